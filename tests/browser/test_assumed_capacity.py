"""A capacity that a user types where the profile has none."""

from __future__ import annotations

from support.browser.viewer import Viewer, until


def test_a_typed_capacity_reaches_figures_and_the_address(viewer: Viewer) -> None:
    assert "figure-headroom" not in viewer.figures()
    before = viewer.figures()
    viewer.get("assumed-capacity").fill("15.75 GiB")
    viewer.get("assumed-capacity").press("Enter")
    viewer.wait_for_state(capacity="16911433728")
    viewer.wait_until_ready()
    after = until(viewer.figures, lambda now: now != before and len(now) > 0, "no figure changes")
    assert any(value.startswith("16,911,433,728") for value in after.values()), after
    assert viewer.get("assumed-capacity").input_value() == "15.75 GiB"
    viewer.get("assumed-capacity").fill("")
    viewer.get("assumed-capacity").press("Enter")
    viewer.wait_for_state(capacity=None)
    until(viewer.figures, lambda now: now == before, "the capacity stays")


def test_the_first_tab_stop_skips_to_the_contents(viewer: Viewer) -> None:
    skip = viewer.get("skip-link")
    skip.focus()
    skip.press("Enter")
    focused = viewer.frame.evaluate("document.activeElement.getAttribute('data-testid')")
    assert focused == "contents"
    assert viewer.frame.evaluate("document.querySelector('a, button, input, select').dataset.testid") == "skip-link"
    state = viewer.state()
    assert state["tab"] == "memory_viewer", "the link replaced the state in the address"
