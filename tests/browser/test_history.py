"""The browser's Back and Forward buttons: an entry for each change of place, and for nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.browser.hosts import in_host
from support.browser.logs import LARGEST, REMAT, SMALL, TRAIN
from support.browser.pages import Open
from support.browser.viewer import Viewer, until


@dataclass(frozen=True)
class Step:
    """The page at an entry of the browser's history."""

    state: dict[str, str]
    tab: str
    headline: str


def read(viewer: Viewer) -> Step:
    viewer.wait_until_ready()
    viewer.rest()
    until(viewer.frame.locator("main [aria-busy=true]").count, lambda busy: busy == 0, "the page waits for an answer")
    tab = viewer.frame.locator("[aria-label=Views] [role=tab][aria-selected=true]").inner_text()
    # The test's own address names the first tab, which the page leaves out.
    state = {key: value for key, value in viewer.state().items() if (key, value) != ("tab", "overview")}
    return Step(state, tab, viewer.get("headline").text_content() or "")


def entries(viewer: Viewer) -> int:
    return int(viewer.page.evaluate("history.length"))


@pytest.fixture
def overview(open_at: Open) -> Viewer:
    viewer = open_at(tab="overview", run=TRAIN)
    viewer.get("recordings-table").wait_for()
    viewer.rest()
    return viewer


def test_back_and_forward_restore_tabs_modules_and_pairs(overview: Viewer) -> None:
    before, steps = entries(overview), [read(overview)]
    overview.get("tab-memory_viewer").click()
    overview.wait_for_state(tab="memory_viewer", module=LARGEST, space="HBM")
    steps.append(read(overview))
    overview.pick("module-picker", SMALL, SMALL)
    overview.wait_for_state(module=SMALL, space="HBM")
    overview.get("timeline-search").fill("fusion")
    overview.get("timeline-plot").press("+")
    overview.wait_for_state(search="fusion", module=SMALL)
    steps.append(read(overview))
    assert "zoom" in steps[-1].state
    overview.get("tab-compare").click()
    until(overview.state, lambda state: "a" in state, "no pair")
    steps.append(read(overview))
    overview.get("swap").click()
    overview.wait_for_state(a=steps[-1].state["b"])
    steps.append(read(overview))
    assert entries(overview) == before + 4
    for at in (3, 2, 1, 0):
        overview.page.go_back()
        until(lambda: read(overview), steps[at].__eq__, f"Back to step {at}")
    for at, by in ((1, 1), (4, 3)):
        overview.page.evaluate(f"history.go({by})")
        until(lambda: read(overview), steps[at].__eq__, f"Forward to step {at}")
    assert entries(overview) == before + 4


# Told several places within moments, XProf's router may add an entry of its own.
@pytest.mark.parametrize("host", ["standalone", "tensorboard"], indirect=True, scope="session")
def test_rapid_clicks_lose_no_entry_and_add_none(overview: Viewer) -> None:
    before = entries(overview)
    tabs = ("memory_viewer", "compare", "overview", "memory_viewer")
    click = "tabs => tabs.forEach(tab => document.querySelector(`[data-testid=tab-${tab}]`).click())"
    overview.frame.evaluate(click, tabs)
    overview.wait_for_state(tab="memory_viewer", module=LARGEST)
    read(overview)
    for tab in ("overview", "compare", "memory_viewer"):
        overview.page.go_back()
        overview.wait_for_state(tab=tab)
    overview.page.evaluate("history.go(-1); history.go(2)")
    overview.wait_for_state(tab="compare")
    read(overview)
    overview.page.evaluate("history.go(-2)")
    overview.get("recordings-table").wait_for()
    assert read(overview).tab == "Overview"
    assert entries(overview) == before + len(tabs)


# In XProf, the sidebar picks the run.
@pytest.mark.parametrize("host", ["standalone", "tensorboard"], indirect=True, scope="session")
def test_a_run_that_is_picked_can_be_left_again(overview: Viewer) -> None:
    overview.pick("run-picker", REMAT, REMAT)
    overview.wait_for_state(run=REMAT)
    remat = read(overview)
    overview.page.go_back()
    overview.wait_for_state(run=TRAIN)
    assert read(overview) != remat
    overview.page.go_forward()
    until(lambda: read(overview), lambda now: now == remat, "Forward")


def test_another_tab_starts_at_its_top_and_back_returns_to_the_row(open_at: Open) -> None:
    viewer = open_at(tab="overview", run=TRAIN)
    viewer.page.set_viewport_size({"width": 1000, "height": 300})
    viewer.get("co-residency").get_by_role("button").last.scroll_into_view_if_needed()
    before = until(lambda: scrolled(viewer), lambda top: top > 100, "the page is not scrolled")
    viewer.get("co-residency").get_by_role("button").last.click()
    viewer.wait_for_state(tab="memory_viewer")
    viewer.wait_until_ready()
    assert scrolled(viewer) == 0
    viewer.page.go_back()
    viewer.wait_for_state(tab="overview")
    until(lambda: scrolled(viewer), lambda top: abs(top - before) <= 1, "Back is at another position")
    viewer.page.go_forward()
    viewer.wait_for_state(tab="memory_viewer")
    until(lambda: scrolled(viewer), lambda top: top == 0, "Forward is at another position")


def scrolled(viewer: Viewer) -> float:
    return float(viewer.frame.locator("html").evaluate("() => scrollY"))


@in_host("standalone")
@pytest.mark.parametrize("change", [{"module": SMALL}, {"tab": "compare"}, {"tab": "overview"}], ids=str)
def test_the_page_is_loading_as_soon_as_its_address_has_changed(open_at: Open, change: dict[str, str]) -> None:
    viewer = open_at(tab="memory_viewer", run=TRAIN, module=LARGEST)
    viewer.page.route("**/api/**", lambda route: None)
    said = viewer.frame.evaluate(
        """change => new Promise(done => {
          addEventListener('hashchange', () => setTimeout(() => done(document.documentElement.dataset.state)));
          const parts = new URLSearchParams(location.hash.slice(1));
          for (const [key, value] of Object.entries(change)) parts.set(key, value);
          location.hash = parts.toString();
        })""",
        change,
    )
    assert said == "loading"
