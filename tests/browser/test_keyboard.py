"""Keyboard navigation of the page, and its layout in a narrow window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page
from support.browser.hosts import Host, open_demo
from support.browser.viewer import Viewer, until

COMPARED = {"tab": "compare", "run": "train_step/cpu"}
PROGRAM = {"tab": "memory_viewer", "run": "train_step/cpu", "module": "jit_train_step(0)", "selected": "3"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with open_demo(tmp_path_factory.mktemp("by_keys"), "train_step") as host:
        yield host


def test_tabs_are_one_tab_stop_and_arrows_move_between_them(host: Host, page: Page) -> None:
    page.goto(host.address(COMPARED))
    viewer = Viewer(page).wait_until_ready()
    focused = page.locator(":focus")
    page.keyboard.press("Tab")
    assert focused.inner_text() == "Skip to contents"
    page.keyboard.press("Tab")
    assert focused.inner_text() == "Compare"
    page.keyboard.press("ArrowRight")
    assert focused.inner_text() == "Program"
    page.keyboard.press("ArrowRight")  # the last tab has no next one
    assert focused.inner_text() == "Program"
    page.keyboard.press("ArrowLeft")
    assert focused.inner_text() == "Compare"
    page.keyboard.press("Home")
    assert focused.inner_text() == "Overview"
    page.keyboard.press("Enter")
    viewer.wait_for_state(tab="overview")
    until(lambda: viewer.get("tab-overview").get_attribute("aria-selected"), lambda now: now == "true", "not opened")
    page.keyboard.press("Tab")
    assert focused.get_attribute("data-testid") == "run-picker"


def test_every_tab_stop_has_a_name_and_shows_the_focus(host: Host, page: Page) -> None:
    page.goto(host.address(PROGRAM | {"chart": "flame"}))
    viewer = Viewer(page).wait_until_ready()
    viewer.get("advice-piece").first.wait_for()  # comes after the charts
    read = """() => {
      const node = document.activeElement;
      if (node === document.body) return null;
      const { outlineStyle, boxShadow } = getComputedStyle(node);
      const label = node.labels?.[0]?.innerText ?? '';
      return {
        html: node.outerHTML.slice(0, 200),
        named: Boolean((node.ariaLabel ?? node.innerText ?? '').trim() || label.trim()),
        seen: outlineStyle !== 'none' || boxShadow !== 'none',
      };
    }"""
    stops: list[dict[str, Any]] = []
    page.keyboard.press("Tab")
    while (stop := page.evaluate(read)) is not None and len(stops) < 200:
        stops.append(stop)
        page.keyboard.press("Tab")
    assert 40 < len(stops) < 200
    assert [stop["html"] for stop in stops if not (stop["named"] and stop["seen"])] == []


@pytest.mark.parametrize("state", [PROGRAM, COMPARED])
def test_a_narrow_window_cuts_nothing_off(state: dict[str, str], host: Host, page: Page) -> None:
    page.set_viewport_size({"width": 900, "height": 700})
    page.goto(host.address(state))
    Viewer(page).wait_until_ready()
    assert page.evaluate("document.documentElement.scrollWidth") == 900
    # Controls in the header do not overlap.
    read = """() => [...document.querySelectorAll('.top button, .top a, .top input, .top select')]
      .map(node => node.getBoundingClientRect()).map(box => [box.left, box.top, box.right, box.bottom])"""
    boxes = page.evaluate(read)
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert 0 <= left < right <= 900
        for other in boxes[:i]:
            assert other[2] <= left + 1 or right <= other[0] + 1 or other[3] <= top + 1 or bottom <= other[1] + 1
