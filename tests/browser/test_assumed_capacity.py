"""A capacity that a user types where the profile has none."""

from __future__ import annotations

from support.browser.hosts import in_host
from support.browser.viewer import Viewer, until


@in_host("xprof")
def test_a_typed_capacity_reaches_figures_and_the_address(viewer: Viewer) -> None:
    limit = viewer.get("curve-limit")
    assert limit.count() == 0
    viewer.get("assumed-capacity").fill("1 GiB")
    viewer.get("assumed-capacity").press("Enter")
    viewer.wait_for_state(capacity="1073741824")
    until(limit.count, bool, "the chart has no limit")
    assert "assumed" in (limit.get_attribute("title") or "")
    assert viewer.get("assumed-capacity").input_value() == "1 GiB"
    viewer.get("assumed-capacity").fill("V5e")
    viewer.get("assumed-capacity").press("Enter")
    viewer.wait_for_state(capacity=str(int(15.75 * 2**30)))
    viewer.get("assumed-capacity").fill("")
    viewer.get("assumed-capacity").press("Enter")
    viewer.wait_for_state(capacity=None)
    until(limit.count, lambda count: count == 0, "the capacity stays")


def test_the_first_tab_stop_skips_to_the_contents(viewer: Viewer) -> None:
    skip = viewer.get("skip-link")
    skip.focus()
    skip.press("Enter")
    focused = viewer.frame.evaluate("document.activeElement.getAttribute('data-testid')")
    assert focused == "contents"
    assert viewer.frame.evaluate("document.querySelector('a, button, input, select').dataset.testid") == "skip-link"
    state = viewer.state()
    assert state["tab"] == "memory_viewer", "the link replaced the state in the address"
