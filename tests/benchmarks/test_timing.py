"""The cost of a command, the profiles that it is measured on, and the check of how cost grows."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from benchmarks.profiles import made
from benchmarks.results.figures import Measured
from benchmarks.scaling import growth
from benchmarks.timing import Cost, cost_of, python
from benchmarks.works import HERE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory is in units of Linux")


def test_the_memory_of_a_command_is_not_that_of_the_process_that_measures_it() -> None:
    large = bytearray(b"\1") * (200 << 20)
    small = cost_of(python("-S", "-c", "print('seven')"))
    assert small.memory < 50 << 20 < len(large)
    assert small.size == len("seven\n")
    assert cost_of(python("-S", "-c", f"bytearray(b'1') * {100 << 20}")).memory > 100 << 20


def test_a_command_that_fails_is_reported_with_what_it_printed() -> None:
    with pytest.raises(SystemExit, match="lost"):
        cost_of(python("-c", "raise SystemExit('lost')"))


def mark(text: str, logdir: Path) -> None:
    logdir.mkdir(parents=True)
    (logdir / "made").write_text(text)


def fail(logdir: Path) -> None:
    logdir.mkdir(parents=True)
    raise ValueError


def test_a_profile_is_made_once(tmp_path: Path) -> None:
    logdir = made(partial(mark, "one"), tmp_path / "profiles")
    assert (logdir / "made").read_text() == "one"
    (logdir / "made").write_text("kept")
    assert (made(partial(mark, "one"), tmp_path / "profiles") / "made").read_text() == "kept"
    assert made(partial(mark, "two"), tmp_path / "profiles") != logdir


def test_a_profile_that_cannot_be_made_is_not_kept(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(SystemExit, match="fail was not made"):
            made(partial(fail), tmp_path)


def test_growth_is_compared_with_n_log_n_and_memory_with_twice_the_file() -> None:
    def measured(seconds: float, megabytes: int) -> Measured:
        return Measured(50_000_000, {HERE: [Cost(9, seconds, megabytes * 1_000_000, 1), Cost(9, 9, 1, 1)]})

    figures = {"buffers 1000": measured(0.01, 100), "buffers 10000": measured(0.1, 210), "events 10": measured(1, 1)}
    assert list(growth(figures | {"buffers 100000": measured(5, 150)})) == [
        "buffers 1,000: 0.50 of the allowed memory",
        "buffers 10,000: 1.05 of the allowed memory MISSED; since 1,000, time grew as n^1.00 (n log n: n^1.12)",
        "buffers 100,000: 0.75 of the allowed memory; since 10,000, time grew as n^1.70 (n log n: n^1.10) MISSED",
        "events 10: 0.01 of the allowed memory",
    ]
