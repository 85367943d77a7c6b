"""Lines about fleets that are larger than a terminal, and about odd ones."""

from __future__ import annotations

import io
import time

import pytest
from support.fleets import GIB, fleet_of_peaks

from tb_memplugin.model.fleet import Fleet, Rise, TrendChange, TrendPoint, TrendSeries
from tb_memplugin.questions.fleet.terminal import bar, fleet_progress, lines, trend_lines
from tb_memplugin.questions.fleet.words import hosts_text


def test_many_outliers_and_problems_are_counted() -> None:
    found = list(lines(fleet_of_peaks([28 * GIB] * 100 + [30 * GIB] * 30), "rule"))
    assert "outliers on 30 hosts" in found[2]
    assert found[-1] == "and 19 more" and len(found) == 15
    assert found[4].endswith("many small sites")


def test_a_fleet_without_devices_is_one_line() -> None:
    assert list(lines(Fleet("run", (), ()), "rule")) == ["run: No host is read"]


def test_equal_devices() -> None:
    found = list(lines(fleet_of_peaks([GIB] * 3), "rule"))
    assert found[1] == "worst     all 3 devices are equal   1.00 GiB of 32.0 GiB"
    assert "spread 0.0% · no outliers" in found[2]
    assert list(lines(fleet_of_peaks([GIB, GIB, 0]), "rule"))[1].endswith("equal to the median device")


@pytest.mark.parametrize(
    ("missing", "hosts", "text"),
    [
        (["w-4", "w-16"], ["w-0", "w-17"], "4, 16"),
        (["host-009.example"], ["host-008.example", "host-010.example"], "009"),
        (["w-14"], ["w-13", "w-15"], "14"),
        (["w-2", "w-3", "w-4", "w-9"], ["w-1", "w-10"], "2\u20134, 9"),
    ],
)
def test_missing_hosts_are_named_by_their_numbers(missing: list[str], hosts: list[str], text: str) -> None:
    assert hosts_text(missing, hosts) == text


def test_a_trend_of_many_programs_lists_the_largest() -> None:
    points = tuple(TrendPoint(f"2026-11-{d:02}", "c", d * GIB, d * GIB, 2, "/x", "k") for d in (1, 2, 3))
    rises = (Rise(0, 1, (TrendChange("a.py:1", 0, GIB),)), Rise(1, 2, problem="the file is gone"))
    found = list(trend_lines([TrendSeries(f"jit_{n}", True, points, rises) for n in range(9)]))
    assert found[-1] == "and 1 smaller program: see --json"
    assert found[3].endswith("a.py:1, 1.00 GiB, new") and found[4].endswith("the file is gone")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_disappears_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stream = Terminal()
    with fleet_progress(stream, quiet=False) as done:
        done(1, 4)
        assert not stream.getvalue()
        now[0] += 2
        done(2, 4)
    assert stream.getvalue() == f"\r{bar(2, 4, 2)}\x1b[K\r\x1b[K"
    assert bar(2, 4, 2) == "[#####-----] 2 of 4 files, 2 s"
    with fleet_progress(stream := Terminal(), quiet=True) as done:
        now[0] += 2
        done(2, 4)
    assert not stream.getvalue()
