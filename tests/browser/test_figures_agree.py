"""Figures that stand in two places of the page, where the page itself computes them: they are the same."""

from __future__ import annotations

import re

from support.browser.hosts import in_host
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open
from support.browser.viewer import Viewer, until

SIZE = r"[\d.,]+ [KMGT]?i?B"


@in_host("standalone")
def test_a_search_finds_the_same_bytes_in_the_flame_graph_and_the_table(go_to: Open) -> None:
    """Copies of the mlp's arguments have no op_name; forward and functions named mlp are labels of the tree only."""
    viewer = go_to(tab="memory_viewer", run=TRAIN, module=LARGEST, chart="flame")
    before = ""
    for word in ("mlp", "forward"):
        viewer.get("tree-search").fill(word)
        viewer.get("table-search").fill(word)

        def both() -> tuple[str, str]:
            viewer.get("tree-search")  # opens its tab
            until(viewer.get("tree-found").count, bool, "nothing is found")
            return viewer.get("tree-found").all_inner_texts()[0].partition(" in ")[0], summary(viewer)

        before, _ = until(both, lambda found, known=before: found[0] == found[1] != known, word)  # type: ignore[misc]


def summary(viewer: Viewer) -> str:
    """Return the bytes in the table's summary."""
    text = viewer.get("buffer-table").locator(".toolbar-summary").inner_text()
    sizes = re.findall(SIZE, text)
    return str(sizes[-1]) if sizes else text


@in_host("tensorboard")
def test_the_charts_heading_and_table_have_one_total(go_to: Open) -> None:
    viewer = go_to(tab="memory_viewer", run=TRAIN, module=LARGEST, chart="flame")
    total = viewer.text("live-heading").partition(" live")[0]
    until(viewer.get("crumbs").count, bool, "no flame graph")
    assert summary(viewer) == total
    assert viewer.get("figure-live_peak").locator("dd").first.inner_text() == total


@in_host("xprof")
def test_a_buffer_whose_memory_outlives_its_last_use_names_who_uses_it(go_to: Open) -> None:
    viewer = go_to(tab="memory_viewer", run=TRAIN, module=LARGEST, position="215")
    viewer.get("table-search").fill("^wrapped_broadcast$")
    row = until(viewer.table, lambda rows: len(rows) == 1, "not one row")[0]
    assert row["Last used"] == "87 → 215"
    viewer.get("buffer-table").get_by_role("row").filter(has_text="wrapped_broadcast").click()
    details = until(viewer.details, lambda text: "uses it from" in text, "no occupants")
    assert re.search(r"In use until\s*215", details)
    assert re.search(r"wrapped_scatter\s*uses it from 87 to 215", details)
