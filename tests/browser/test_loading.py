"""Keyboard access, light and dark themes, and contrast."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Browser
from support.browser.expected import recording
from support.browser.hosts import Host
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open, new_context
from support.browser.viewer import Viewer, until

# Tab stops before the plot; about 20 of them are XProf's own.
MAX_STOPS = 80


def test_the_keyboard_alone_leads_to_the_details_of_a_buffer(open_at: Open, host: Host) -> None:
    viewer = open_at(run=TRAIN, module=LARGEST)
    viewer.picture()
    keyboard = viewer.page.keyboard
    seen: list[str] = []
    focused = """() => {
      const at = document.activeElement;
      if (!document.hasFocus() || !at || at === document.body) return null;
      const style = getComputedStyle(at);
      const visible = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none';
      return [at.dataset.testid ?? at.getAttribute('aria-label') ?? at.textContent, visible];
    }"""
    while "timeline-plot" not in seen:
        assert len(seen) < MAX_STOPS, seen
        keyboard.press("Tab")
        found = viewer.frame.evaluate(focused)
        seen.append(found[0] if found else "")
        assert not found or found[1], f"the focus on {found[0]} is not visible"
    run = {"run-picker"} if host.name != "xprof" else set()  # XProf's sidebar has the runs
    assert run | {"module-picker", "theme-toggle", "usage-chart", "timeline-search"} <= {*seen}
    keyboard.press("n")
    keyboard.press("Enter")
    until(viewer.get("details").count, bool, "no details")
    expected = recording(host)
    row = int(until(viewer.state, lambda state: "selected" in state, "nothing is selected")["selected"])
    start, end = expected.lifetime(row)
    assert start <= expected.peak < end
    assert viewer.get("details").get_by_role("heading").first.inner_text() == expected.rows["name"][row]
    keyboard.press("]")
    until(lambda: viewer.text("inspected-position"), lambda text: text == str(expected.peak + 1), "the position stays")
    keyboard.press("Escape")
    until(viewer.get("details").count, lambda count: count == 0, "the details stay")
    keyboard.press("?")
    until(viewer.frame.get_by_role("dialog").count, bool, "no help")
    keyboard.press("Escape")
    until(viewer.frame.get_by_role("dialog").count, lambda count: count == 0, "the help stays")
    keyboard.press("/")
    focus = "document.activeElement.type"
    until(lambda: viewer.frame.evaluate(focus), lambda kind: kind == "search", "the search has no focus")


# Contrast of every text with its background by WCAG 2: [ratio, required ratio, colors, text].
# WCAG exempts disabled controls. Large text is 24 px, or 18.66 px in bold.
CONTRAST = """() => {
  const probe = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgba = color => {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = color;
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = element => {
    if (element === null) return [255, 255, 255, 1];
    const color = rgba(getComputedStyle(element).backgroundColor);
    return color[3] === 1 ? color : over(color, ground(element.parentElement));
  };
  const opacity = element =>
    element === null ? 1 : Number(getComputedStyle(element).opacity) * opacity(element.parentElement);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    if (text === '' || element.closest(':disabled, [aria-hidden=true], option') || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const behind = ground(element);
    const ink = rgba(style.color);
    ink[3] *= opacity(element);
    const [a, b] = [light(over(ink, behind)), light(behind)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    found.push([(a + 0.05) / (b + 0.05), large ? 3 : 4.5, `${style.color} on ${behind}`, text.slice(0, 40)]);
  }
  return found;
}"""


# The colors are the same in each host.
@pytest.mark.parametrize(
    ("host", "theme"), [("standalone", "light"), ("xprof", "dark")], indirect=["host"], scope="session"
)
def test_every_text_has_enough_contrast(viewer: Viewer, theme: Literal["light", "dark"]) -> None:
    viewer.page.emulate_media(color_scheme=theme)
    until(lambda: ground(viewer) > 128, lambda light: light == (theme == "light"), "not the system's theme")
    viewer.picture()
    viewer.get("table-group").select_option("none")
    viewer.get("buffer-row").first.click()
    viewer.details()
    viewer.get("table-search").fill("([")
    viewer.rest()
    measured = viewer.frame.evaluate(CONTRAST)
    assert len(measured) > 100
    low = [text for text in measured if text[0] < text[1]]
    viewer.page.emulate_media(color_scheme="light")
    assert not low, "\n".join(f"{ratio:.2f} < {needed}: {colors}: {text}" for ratio, needed, colors, text in low)


def ground(viewer: Viewer) -> int:
    """Return the lightness of the page's background, of 255."""
    read = "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"
    return int(viewer.frame.evaluate(read))


def test_the_theme_follows_the_system_until_one_is_chosen(host: Host, browser: Browser) -> None:
    context = new_context(browser)
    viewer = Viewer(context.new_page())
    try:
        viewer.page.goto(host.address({"run": TRAIN, "module": LARGEST}))
        viewer.wait_until_ready()
        check_theme(viewer)
    finally:
        context.close()


def check_theme(viewer: Viewer) -> None:
    assert ground(viewer) > 200
    light = viewer.picture()[0]
    viewer.page.emulate_media(color_scheme="dark")
    until(lambda: ground(viewer), lambda level: level < 60, "dark is not followed")
    assert viewer.picture()[0] != light
    viewer.get("theme-toggle").click()
    until(lambda: ground(viewer), lambda level: level > 200, "light is not chosen")
    assert viewer.picture()[0] == light
    viewer.page.reload()
    viewer.wait_until_ready()
    assert ground(viewer) > 200
    viewer.get("theme-toggle").click()
    until(lambda: ground(viewer), lambda level: level < 60, "dark is not chosen")
    viewer.page.emulate_media(color_scheme="light")
    viewer.page.reload()
    viewer.wait_until_ready()
    assert ground(viewer) < 60
