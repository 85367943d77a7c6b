"""Sessions that are one capture."""

from __future__ import annotations

import pytest
from support.growth import grows_linearly

from tb_memplugin.fleet.sessions import began_at, captures, host_count, rule_text
from tb_memplugin.logdir import HostFile, Run, Stages


def run(name: str, *hosts: str) -> Run:
    files = tuple(HostFile(f"/log/{name}/{host}.xplane.pb", host, 1, "1-1", modified_ns=10**9) for host in hosts)
    return Run(name, files, f"/log/{name}", "/log")


def joined(*runs: Run, tolerance: float = 60) -> list[list[str]]:
    """Return the hosts of each capture with the second at which their session began, newest capture first."""
    return [
        [f"{file.host}@{run.name[-2:]}" for run in capture.runs for file in run.files]
        for capture in captures(runs, tolerance)
    ]


def at(second: int, *hosts: str, parent: str = "gpt/") -> Run:
    return run(f"{parent}2026_11_23_04_{second // 60:02}_{second % 60:02}", *hosts)


def test_hosts_that_name_their_folders_by_their_own_clocks_are_one_capture() -> None:
    assert joined(at(3, "b"), at(1, "a", "c"), at(10, "d")) == [["a@01", "c@01", "b@03", "d@10"]]


def test_a_session_after_the_tolerance_is_another_capture() -> None:
    assert joined(at(0, "a"), at(59, "b"), tolerance=58) == [["b@59"], ["a@00"]]
    assert joined(at(0, "a"), at(59, "b"), tolerance=59) == [["a@00", "b@59"]]


def test_no_host_is_in_a_capture_twice() -> None:
    runs = [at(0, "a", "b"), at(2, "c"), at(31, "c"), at(32, "a"), at(33, "b")]
    assert joined(*runs) == [["c@31", "a@32", "b@33"], ["a@00", "b@00", "c@02"]]


def test_a_host_that_failed_in_one_of_two_captures_stays_in_the_other() -> None:
    assert joined(at(0, "a"), at(1, "b"), at(29, "c"), at(30, "a"), at(31, "b")) == [
        ["c@29", "a@30", "b@31"],
        ["a@00", "b@01"],
    ]


def test_runs_of_other_folders_are_other_captures() -> None:
    assert len(captures([at(0, "a", parent="gpt/"), at(0, "b", parent="bert/")])) == 2


def test_a_name_that_is_no_date_stands_alone() -> None:
    assert len(captures([run("gpt/one", "a"), run("gpt/two", "b")])) == 2
    assert began_at("run") is began_at("2026_13_45_99_00_00") is began_at("x2026_11_23_04_00_00") is None
    assert began_at("2026_11_23_04_00_10") == began_at("2026-11-23_04-00-00") + 10  # type: ignore[operator]


def test_the_sessions_and_the_rule_are_told() -> None:
    (capture,) = captures([at(0, "a"), at(9, "b", "c")])
    assert [(session.name[-2:], session.hosts) for session in capture.sessions] == [("00", 1), ("09", 2)]
    assert "30 s" in rule_text(30)


@pytest.mark.parametrize("pause", [30, 1])
def test_the_time_for_sessions_of_one_host_is_linear_in_their_number(pause: int) -> None:
    days = [f"2026_{month:02}_{day:02}" for month in range(1, 13) for day in range(1, 29)]
    runs = [run(f"{day}_00_{n * pause // 60:02}_{n * pause % 60:02}", "a") for day in days for n in range(30)]

    def join(count: int) -> None:
        assert len(captures(runs[:count])) == count

    assert grows_linearly(join, len(runs) // 8)


def test_a_folder_of_two_logdirs_counts_once() -> None:
    (capture,) = captures([at(0, "a"), at(0, "a")])
    assert [file.host for file, _ in capture.files] == ["a"]


def test_stages_of_a_dump_are_no_files() -> None:
    stages = HostFile("/log/dump", "", 0, "", stages=Stages(5))
    (capture,) = captures([Run("dump", (stages,), "/log/dump", "/log")])
    assert capture.files == []


@pytest.mark.parametrize(
    ("folder", "files", "count"),
    [
        ("run", ["memory1.prof", "memory2.prof", "memory10.prof"], 1),
        ("run", ["snapshot_1.pickle", "snapshot_2.pickle", "other.pickle"], 2),
        ("run", ["rank0.pickle", "rank1.pickle"], 2),
        ("run", ["10.0.0.1.xplane.pb", "10.0.0.2.xplane.pb"], 2),
        ("dump", ["compile.oom.txt", ""], 1),
        ("device_profiles/2027_01_15_08_00_00_node_7", ["node_7.watch", "memory_step_10.prof"], 1),
    ],
)
def test_files_that_one_process_saved_are_no_hosts(folder: str, files: list[str], count: int) -> None:
    found = [
        HostFile(
            f"/log/{folder}/{name}",
            name.partition(".")[0] if name.endswith(".oom.txt") else name.rpartition(".")[0],
            1,
            "1-1",
        )
        for name in files
    ]
    assert host_count(Run(folder, tuple(found), f"/log/{folder}", "/log")) == count
