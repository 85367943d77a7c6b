"""The tables in the pages, which are made of the measured figures, and a short measurement of a server."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from benchmarks.cold_server import OURS, our_first_views
from benchmarks.profiles import program
from benchmarks.results.figures import Measured
from benchmarks.results.table import full, replaced, short, tables, times_as_fast
from benchmarks.rivals import measure
from benchmarks.timing import Cost
from benchmarks.works import CPP, HERE, RS, Work

FIGURES = {
    "program-100k": Measured(
        60_000_000,
        {
            CPP: [Cost(5.0, 4.0, 900_000_000, 1)],
            RS: [Cost(2.1, 2.0, 700_000_000, 1), Cost(1.6, 1.5, 600_000_000, 1)],
            HERE: [Cost(1.0, 0.5, 200_000_000, 1), Cost(0.9, 0.5, 250_000_000, 1)],
        },
    )
}


def test_the_pages_have_the_tables_that_the_figures_make() -> None:
    for page, name, table in tables():
        text = page.read_text()
        assert replaced(text, name, table) == text, f"python -m benchmarks.rivals --write, for {page}"


def test_a_ratio_is_the_median_over_rounds_in_which_both_ran() -> None:
    costs = FIGURES["program-100k"].costs
    assert times_as_fast(costs[HERE], costs[RS]) == 3.5
    assert times_as_fast(costs[HERE], costs[CPP]) == 8.0


def test_tables_show_medians_the_largest_memory_and_the_ratio_to_the_fastest_tool() -> None:
    rows = full(FIGURES).splitlines()
    assert rows[-2] == "|  | xprof-rs | 1.75 s [1.50, 2.00] | 1.85 s | 700 MB | 3.5 times as fast |"
    assert rows[-1] == "|  | tb_memplugin | 0.50 s [0.50, 0.50] | 0.95 s | 250 MB |  |"
    assert "| 4.00 s, 900 MB | 1.75 s, 700 MB | 0.50 s, 250 MB | 3.5 times as fast |" in short(
        FIGURES, {"xprof": "2", "xprof-rs": "0"}
    )


def test_a_page_without_its_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places"):
        replaced("no table here", "all", "|")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process's memory")
def test_a_cold_server_is_measured_from_its_start(tmp_path: Path) -> None:
    work = Work("", partial(program, 300), {HERE: partial(OURS.measure, view=our_first_views)})
    size, costs = measure(work, 1, tmp_path)
    (cost,) = costs[HERE]
    assert size > 100_000
    assert cost.whole > cost.answer > 0
    assert cost.memory > 10_000_000 and cost.size > 1000
