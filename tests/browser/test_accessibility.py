"""axe-core on all tabs, charts and dialogs in both themes, narrow windows, zoom, and reduced motion."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support.browser.axe import COLOR_RULES, violations
from support.browser.hosts import Host, open_standalone
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open, new_context
from support.browser.viewer import Viewer, until
from support.fits import write_search
from support.servers import DEMO
from support.torch_training import Training
from support.watch_files import live_file

PROGRAM = {"tab": "memory_viewer", "run": TRAIN, "module": LARGEST}
LEAK, TORCH = {"tab": "memory_profile", "run": "leak/cpu"}, {"tab": "memory_profile", "run": "torch"}
SNAPSHOTS, COMPARE = {"tab": "snapshots"}, {"tab": "compare"}
LIVE = "[data-testid=breakdown]"
BREAKDOWN = {"below": "breakdown"}
WATCHED = "device_profiles/2027_01_15_08_00_00_host0_7"
CANDIDATE = "fits/fit_gpt.step_v5e-2x2_remat-none_batch-172"
FULL = {"full": "true"}

# The whole page: every tab, each with and without content.
PAGES: dict[str, dict[str, str]] = {
    "overview": {"tab": "overview", "run": TRAIN},
    "overview of two files": {"tab": "overview", "run": "v5e_out_of_memory"},
    "program": {**PROGRAM, "selected": "3", "group": "role", "search": "dot"},
    "allocator": {**LEAK, "selected": "3", "axis": "time"},
    "PyTorch": {**TORCH, "selected": "20"},
    "watched job": {"tab": "memory_profile", "run": WATCHED},
    "no events": {"tab": "memory_profile", "run": TRAIN},
    "no snapshots": {**SNAPSHOTS, "run": TRAIN},
    "device profiles": {**SNAPSHOTS, "run": "device_profile_leak", "picked": "leak"},
    "out of memory": {**SNAPSHOTS, "run": "v5e_out_of_memory"},
    "compared programs": {**COMPARE, "run": TRAIN},
    "compared allocators": {
        **COMPARE,
        "run": "leak/cpu",
        "a": "leak/cpu|localhost|allocator|cpu:0 live arrays",
        "b": "leak_mended/cpu|localhost|allocator|cpu:0 live arrays",
        "change": "0,0",
        "steps": "source",
    },
    "compared device profiles": {**COMPARE, "run": "device_profile_leak"},
    "fit": {"tab": "fit", "candidate": CANDIDATE},
}
# One part of a page, so that the rest is scanned once only.
PARTS: dict[str, tuple[dict[str, str], str]] = {
    **{
        f"program as {chart}": ({**PROGRAM, **BREAKDOWN, "chart": chart}, LIVE)
        for chart in ("flame", "sandwich", "treemap", "tree")
    },
    "program by role": ({**PROGRAM, **BREAKDOWN, "chart": "flame", "only": "role:temporary"}, LIVE),
    "allocator as tree": ({**LEAK, **BREAKDOWN, "chart": "tree"}, LIVE),
    "address map": ({**TORCH, **BREAKDOWN, "chart": "address", "layout": "address"}, LIVE),
    "groups": ({**TORCH, "below": "buffers", "group": "size"}, "[data-testid=buffer-table]"),
    "full-window timeline": ({**PROGRAM, **FULL}, "body"),
    "full-window timeline of an allocator": ({**TORCH, **FULL}, "body"),
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("accessible")
    logs = folder / "logs"
    for run in ("train_step", "leak", "leak_mended", "device_profile_leak", "v5e_out_of_memory"):
        shutil.copytree(DEMO / run, logs / run)
    write_search(logs / "fits")
    assert str(live_file(logs).parent.relative_to(logs)) == WATCHED
    (logs / "torch").mkdir()
    (logs / "torch" / "rank0.pickle").write_bytes(pickle.dumps(Training(6, clears=False).snapshot()))
    with open_standalone(logs, folder) as host:
        yield host


@pytest.fixture(scope="module")
def shown(demo: Host, browser: Browser) -> Iterator[Viewer]:
    context = new_context(browser)
    page = context.new_page()
    page.goto(demo.address(PAGES["overview"]))
    yield Viewer(page).wait_until_ready()
    context.close()


@pytest.fixture
def at(demo: Host, shown: Viewer) -> Iterator[Open]:
    """Yield a function that changes the shared page's state."""

    def go(expected: str = "ready", **state: str) -> Viewer:
        shown.go(demo.address(state), expected)
        return shown

    yield go
    shown.page.emulate_media(color_scheme="light")
    shown.page.set_viewport_size({"width": 1400, "height": 1200})


def in_both_themes(viewer: Viewer, within: str = "html") -> list[str]:
    """Return the violations in light, and those of color in dark."""
    light = violations(viewer, within)
    viewer.page.emulate_media(color_scheme="dark")
    until(lambda: viewer.frame.locator("html").get_attribute("data-theme"), lambda theme: theme == "dark", "not dark")
    dark = violations(viewer, within, COLOR_RULES)
    viewer.page.emulate_media(color_scheme="light")
    return light + [f"dark: {violation}" for violation in dark]


@pytest.mark.parametrize("name", PAGES)
def test_a_tab_has_no_violations(at: Open, name: str) -> None:
    assert in_both_themes(at(**PAGES[name])) == []


@pytest.mark.parametrize("name", PARTS)
def test_a_chart_has_no_violations(at: Open, name: str) -> None:
    state, within = PARTS[name]
    assert in_both_themes(at(**state), within) == []


def test_help_and_the_box_for_errors_have_no_violations(at: Open) -> None:
    viewer = at(**PAGES["no events"])
    viewer.get("help").click()
    viewer.get("glossary").locator("summary").click()
    assert in_both_themes(viewer, "dialog") == []
    viewer.page.keyboard.press("Escape")
    viewer.get("paste").click()
    viewer.get("paste-text").fill("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.")
    viewer.get("paste-read").click()
    viewer.get("paste-answer").wait_for()
    assert in_both_themes(viewer, "dialog") == []
    viewer.page.keyboard.press("Escape")


def test_an_open_list_and_an_error_have_no_violations(at: Open) -> None:
    viewer = at("error", tab="memory_viewer", run="missing")
    viewer.get("run-picker").click()
    until(viewer.options().count, lambda count: count > 3, "the runs are not listed")
    assert in_both_themes(viewer) == []
    viewer.page.keyboard.press("Escape")


def test_the_axe_rules_find_a_button_without_a_name_and_pale_text(at: Open) -> None:
    viewer = at(**PAGES["no events"])
    add = """() => document.querySelector('main').insertAdjacentHTML('beforeend',
      '<p id="pale" style="color: #999; background: #fff">pale <button></button></p>')"""
    viewer.frame.evaluate(add)
    found = violations(viewer)
    viewer.frame.evaluate("document.querySelector('#pale').remove()")
    assert {violation.split()[0] for violation in found} == {"button-name", "color-contrast"}


def test_our_frame_has_no_violations_in_any_host(go_to: Open) -> None:
    """Check one tab: the tests above check all of them, and in a host only the frame differs."""
    assert violations(go_to(tab="memory_viewer", run=TRAIN, module=LARGEST)) == []


def test_no_tab_scrolls_sideways_in_a_narrow_window(at: Open) -> None:
    wide: list[str] = []
    for name, state in {**PAGES, **{part: state for part, (state, _) in PARTS.items()}}.items():
        viewer = at(**state)
        for width in (400, 700):
            viewer.page.set_viewport_size({"width": width, "height": 600})
            viewer.rest()
            found = viewer.frame.evaluate("document.documentElement.scrollWidth")
            wide += [] if found == width else [f"{name}: {found} of {width}"]
    assert wide == []


def test_every_control_can_be_used_at_a_zoom_of_200_percent(demo: Host, browser: Browser) -> None:
    # Zoom halves the CSS pixels of a window and doubles the physical ones of each.
    context = browser.new_context(viewport={"width": 720, "height": 450}, device_scale_factor=2)
    page = context.new_page()
    try:
        for state in (PROGRAM, TORCH, PAGES["compared allocators"]):
            page.goto(demo.address(state))
            Viewer(page).wait_until_ready()
            assert covered_controls(page) == []
    finally:
        context.close()


def covered_controls(page: Page) -> list[str]:
    """Return the buttons and fields, except those of tables and charts, that cannot be clicked in their middle."""
    read = """() => [...document.querySelectorAll('button, input, select, summary')].filter(node => {
      if (node.closest('.virtual, svg, .spans, .skip-link') || node.disabled || !node.checkVisibility()) return false;
      node.scrollIntoView({ block: 'center' });
      const box = node.getBoundingClientRect();
      const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      return hit === null || !(node.contains(hit) || hit.contains(node) && hit.tagName === 'LABEL');
    }).map(node => node.outerHTML.slice(0, 120))"""
    found: list[str] = page.evaluate(read)
    return found


def test_nothing_moves_by_itself_where_the_system_asks_for_reduced_motion(at: Open) -> None:
    viewer = at(**PAGES["no events"])
    moving = """() => {
      const node = document.querySelector('main').appendChild(document.createElement('div'));
      node.className = 'placeholder';
      const count = document.getAnimations().length;
      node.remove();
      return count;
    }"""
    assert viewer.frame.evaluate(moving) == 1
    viewer.page.emulate_media(reduced_motion="reduce")
    assert viewer.frame.evaluate(moving) == 0
    viewer.page.emulate_media(reduced_motion="no-preference")
    for sheet in Path(DEMO.parent / "frontend" / "src" / "styles").glob("*.css"):
        assert "transition" not in sheet.read_text(encoding="utf-8"), f"{sheet.name}: respect reduced motion here, too"
