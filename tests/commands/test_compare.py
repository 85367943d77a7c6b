"""`tb-memplugin compare`: standard output, standard error and exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.command_line import run_for_text
from support.pprof_files import Frame, Sample, write
from support.servers import DEMO

from tb_memplugin.errors import InputError
from tb_memplugin.questions.compare.baseline_file import parse_tolerance
from tb_memplugin.questions.compare.compare_text import code

LEAK = DEMO / "device_profile_leak"
FIRST, LAST = str(LEAK / "memory1.prof"), str(LEAK / "memory9.prof")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_for_text("compare", *arguments)


def test_the_leak_for_people() -> None:
    done = run(FIRST, LAST, "--by", "source")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1.68 MiB (+43.6%) more: 5.53 MiB in B, 3.85 MiB in A." in done.stdout
    steps = [line.split() for line in done.stdout.splitlines() if line.endswith("make_device_profiles.py:52)")]
    assert ["39.1", "KiB", "1.72", "MiB", "+1.68", "MiB", "anotherfunc"] in [step[:7] for step in steps]


def test_the_leak_for_programs() -> None:
    done = run(FIRST, LAST, "--json")
    (answer,) = json.loads(done.stdout)["comparisons"]
    assert answer["b"]["bytes"] - answer["a"]["bytes"] == 44 * 40_000
    assert sum(step["bytes_b"] - step["bytes_a"] for step in answer["steps"]) == 44 * 40_000
    assert answer["changes"]["grown"] == {"entries": 1, "bytes": 44 * 40_000}
    grown, *_ = answer["entries"]
    assert (grown["change"], grown["allocations_a"], grown["allocations_b"]) == ("grown", 1, 9)
    assert "anotherfunc" in grown["source"]


def test_the_leak_for_a_pull_request() -> None:
    done = run(FIRST, LAST, "--markdown")
    assert done.stdout.startswith("### Memory: `memory9, memory9.prof, cpu:0, 5.53 MiB` against `memory1,")
    assert "| 39.1 KiB | 1.72 MiB | +1.68 MiB | grown |" in done.stdout


@pytest.mark.parametrize(
    ("a", "b", "limit", "status"),
    [
        (FIRST, LAST, "2%", 1),
        (FIRST, LAST, "43.5%", 1),
        (FIRST, LAST, "43.6%", 0),
        (FIRST, LAST, "1MiB", 1),
        (FIRST, LAST, "2MiB", 0),
        (LAST, FIRST, "0%", 0),
        (LAST, LAST, "0%", 0),
    ],
)
def test_the_exit_code_says_whether_the_peak_grew_too_much(a: str, b: str, limit: str, status: int) -> None:
    done = run(a, b, "--fail-if-peak-grows", limit)
    assert done.returncode == status
    assert ("the peak grew by more than" in done.stderr) == bool(status)


def test_programs_of_two_builds_are_paired_by_name_and_the_rest_is_told() -> None:
    done = run(str(DEMO / "train_step"), str(DEMO / "leak"), "--json")
    assert done.returncode == 0
    pairs = [
        tuple(found[side]["recording"].split("|")[2] for side in ("a", "b"))
        for found in json.loads(done.stdout)["comparisons"]
    ]
    assert pairs == [("jit_train_step(0)", "jit_train_step(0)")]
    assert "only in" in done.stderr and "jit_loss(2)" in done.stderr


def test_device_profiles_of_several_devices_are_paired_by_device(tmp_path: Path) -> None:
    for name, size in (("memory1.prof", 1), ("memory2.prof", 3)):
        write(tmp_path, [Sample([Frame("train")], size << 20, device=f"cuda:{number}") for number in range(2)], name)
    done = run(str(tmp_path / "memory1.prof"), str(tmp_path / "memory2.prof"), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["comparisons"]
    assert [(one["a"]["recording"].split("|")[-1], one["b"]["recording"].split("|")[-1]) for one in found] == [
        ("cuda:0", "cuda:0"),
        ("cuda:1", "cuda:1"),
    ]
    assert [one["b"]["bytes"] - one["a"]["bytes"] for one in found] == [2 << 20] * 2


def test_two_moments_of_one() -> None:
    done = run(str(DEMO / "leak"), str(DEMO / "leak"), "--recording", "live arrays", "--at-a", "#20", "--json")
    (answer,) = json.loads(done.stdout)["comparisons"]
    assert answer["a"]["position"] == 20 and answer["b"]["position"] > 20
    assert answer["b"]["bytes"] > answer["a"]["bytes"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([FIRST, "/nowhere.prof"], "Cannot read the file"),
        ([FIRST, LAST, "--recording", "nothing"], "No such recording"),
        ([FIRST, str(DEMO / "train_step")], "No recording is in both"),
        ([FIRST, LAST, "--fail-if-peak-grows", "lots"], "Not a size"),
        ([FIRST, LAST, "--at-a", "soon"], "clock"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "before", "after"), [("2%", 1000, 1020), ("0.05 %", 10**6, 1_000_500), ("1KiB", 5, 1029)]
)
def test_how_much_a_peak_may_be(text: str, before: int, after: int) -> None:
    assert parse_tolerance(text).allowed(before) == after


@pytest.mark.parametrize("text", ["%", "2%%", "1e9%", "70G", "two", "-1%"])
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(InputError, match="such as 2%"):
        parse_tolerance(text)


def test_names_are_code_in_markdown_and_stay_so(tmp_path: Path) -> None:
    hostile = "a`|<img src=x>\n| @someone `b\x1b[2J"
    assert code(hostile) == "`a'\\|<img src=x> \\| @someone 'b\x1b[2J`"
    long = code(f"jit(train_step)/{'layer/' * 300}dot_general")
    assert len(long) < 210 and long.startswith("`jit(train_step)/layer") and long.endswith("/dot_general`")
    a = write(tmp_path, [Sample([Frame(hostile)], 10)], "a.prof")
    b = write(tmp_path, [Sample([Frame(hostile)], 90)], "b.prof")
    said = run(str(a), str(b), "--markdown").stdout
    rows = [line for line in said.splitlines() if "img" in line]
    assert rows and all(row.count("`") == 2 + 2 * row.count("`-`") for row in rows)
    assert "\x1b" not in said


def test_causes_of_a_change_are_named_in_all_forms() -> None:
    runs = str(DEMO / "v5e_mended"), str(DEMO / "v5e_out_of_memory"), "--recording", "HBM"
    sentence = "donated buffer `params` is copied now (17 arrays, +304 MiB)"
    assert f"- {sentence}" in run(*runs).stdout
    assert f"- {sentence}" in run(*runs, "--markdown").stdout
    (answer,) = json.loads(run(*runs, "--json").stdout)["comparisons"]
    assert [cause["kind"] for cause in answer["causes"]] == ["microbatches", "not_donated", "not_donated"]
    assert answer["causes"][2]["text"] == sentence
