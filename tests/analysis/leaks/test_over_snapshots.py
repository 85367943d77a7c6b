"""Series of device profiles: their order, the bytes of each line over time, and the leaks found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.pprof_files import Frame, Sample, profile_of
from support.servers import DEMO

from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_snapshots import Growth, find_series, growth
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.questions.kinds.device_profile import series
from tb_memplugin.readers import open_file

LIB = Frame("pjit", "/x/site-packages/jax/_src/pjit.py")


def profiles(held: dict[str, list[int]]) -> list[Recording]:
    """Return one profile for each column; a line with 0 bytes is omitted."""
    found = []
    for number in range(len(next(iter(held.values())))):
        samples = [Sample([LIB, Frame(name)], sizes[number]) for name, sizes in held.items() if sizes[number]]
        (part,) = open_file(profile_of(samples), f"/r/m{number}.prof", run="r")
        found += part.read()
    return found


def curves(found: Growth) -> dict[str, list[int]]:
    sites = found.leaks.sites
    assert sites is not None
    named = {}
    for i in range(len(found.holder)):
        recording = found.series[int(found.holder[i])]
        leaf = int(recording.allocations.stack[int(sites.row[i])])
        named[recording.stacks.frames(leaf)[1][0]] = sites.live[i].tolist()
    return named


def verdicts(found: Growth) -> list[Verdict]:
    assert found.leaks.sites is not None
    return [Verdict(v) for v in found.leaks.sites.verdict.tolist()]


def test_what_each_line_holds_over_the_files() -> None:
    held = {"leak": [10, 20, 30, 40, 50, 60], "kept": [500] * 6, "late": [0, 0, 7, 7, 0, 7]}
    found = growth(profiles(held)[::-1])
    assert curves(found) == held
    assert found.total.tolist() == [sum(column) for column in zip(*held.values(), strict=True)]
    assert [r.title for r in found.series] == [f"m{i}.prof" for i in range(6)]
    assert verdicts(found)[0] is Verdict.LEAK
    assert Verdict.LEAK not in verdicts(found)[1:]


def test_files_are_counted_as_people_count_and_steps_come_before_names() -> None:
    recordings = profiles({"f": list(range(1, 13))})
    assert [r.title for r in growth(recordings[::-1]).series] == [f"m{i}.prof" for i in range(12)]
    stepped = [replace(r, capture_info=CaptureInfo(step=100 - i)) for i, r in enumerate(recordings)]
    assert [r.title for r in growth(stepped).series] == [f"m{i}.prof" for i in reversed(range(12))]


def test_a_series_is_of_one_name_and_memory() -> None:
    of_name = {title: profiles({"f": [1]})[0] for title in ("m1.prof", "m22.prof", "other3.prof", "m.prof")}
    of_name = {title: replace(recording, title=title) for title, recording in of_name.items()}
    elsewhere = replace(of_name["m1.prof"], memory="cuda:1")
    same = find_series(of_name["m1.prof"], [*of_name.values(), elsewhere])
    assert [r.title for r in same] == ["m1.prof", "m22.prof"]


def test_ranks_are_no_series() -> None:
    titles = [f"rank{rank}_step{step}.prof" for rank in (0, 1) for step in (10, 20)]
    of_name = {title: replace(profiles({"f": [1]})[0], title=title) for title in titles}
    same = find_series(of_name["rank1_step10.prof"], list(of_name.values()))
    assert [r.title for r in same] == ["rank1_step10.prof", "rank1_step20.prof"]


def test_what_comes_and_goes_is_no_leak() -> None:
    assert Verdict.LEAK not in verdicts(growth(profiles({"pool": [5, 60, 9, 80, 4, 70, 6, 90, 5, 60, 3]})))


def test_few_profiles_show_curves_and_no_verdict() -> None:
    recordings = profiles({"f": [1, 2, 3]})
    said = series(recordings[0], recordings)
    assert "at least 5 profiles" in str(said["message"])
    assert [(site["curve"], site["verdict"]) for site in said["sites"]] == [([1, 2, 3], None)]


def test_the_loop_of_jaxs_page() -> None:
    recordings = listing_of_path(str(DEMO / "device_profile_leak")).recordings
    said = series(recordings[0], recordings)
    leaking, steady = said["sites"]
    assert leaking["verdict"] == "leak" and leaking["site"].startswith("anotherfunc (")
    assert leaking["curve"] == [40_000 * rows for rows in (1, 3, 6, 10, 15, 21, 28, 36, 45)]
    assert "in 7 of the 7 profiles after the warm-up" in str(leaking["sentence"])
    assert steady["verdict"] != "leak" and set(steady["curve"]) == {4_000_000}
    assert [point["title"] for point in said["points"]] == [f"memory{i}.prof" for i in range(1, 10)]
    assert [point["bytes"] for point in said["points"]] == [
        sum(c) for c in zip(leaking["curve"], steady["curve"], strict=True)
    ]


@pytest.mark.parametrize("count", [0, 1])
def test_a_series_of_none_or_one(count: int) -> None:
    assert len(growth(profiles({"f": [3]})[:count]).series) == count
