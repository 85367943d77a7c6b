"""`tb-memplugin baseline` and `check --baseline`: the file, exit codes, and what is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.changed import changed_logdir
from support.servers import DEMO

from tb_memplugin.cli import main
from tb_memplugin.commands.support.terminal import bounded
from tb_memplugin.questions.compare.compare_text import code

HOSTILE = "`x` | <img src=x> [a](javascript:b)\n# @all \x1b[31m"


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    file = tmp_path / "memory.json"
    assert main(["baseline", str(changed_logdir("base", tmp_path)), "--write", str(file)]) == 0
    return file


def check(baseline: Path, logdir: Path, *options: str) -> int:
    return main(["check", str(logdir), "--baseline", str(baseline), *options])


def edited(baseline: Path, **values: Any) -> Path:
    """Return a copy of a baseline whose recording has other values."""
    content = json.loads(baseline.read_text())
    content["recordings"][0].update(values)
    file = baseline.with_name("edited.json")
    file.write_text(json.dumps(content))
    return file


def test_the_file_is_stable_and_names_no_place_or_time(baseline: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    assert main(["baseline", str(changed_logdir("base", tmp_path / "elsewhere")), "--write", str(again)]) == 0
    text = baseline.read_text()
    assert again.read_text() == text
    assert str(tmp_path) not in text and not re.search(r"/\w+/\w+\.py|20\d\d-", text)
    assert json.loads(text)["schema_version"] == 1
    assert len(text) < 20_000 and max(map(len, text.splitlines())) < 400


def test_an_identical_compile_has_no_cause(baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert check(baseline, changed_logdir("base", tmp_path), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["checked"]
    assert (found["status"], found["causes"], found["differences"], found["unexplained_bytes"]) == ("within", [], [], 0)


def test_a_growth_above_the_tolerance_has_its_cause(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    logdir = changed_logdir("not_donated", tmp_path)
    assert check(baseline, logdir, "--tolerance", "0.1%") == 1
    out = capsys.readouterr().out
    assert "above the baseline: peak, reserved and role output" in out
    assert "donated buffer `state` is copied now (12 arrays, +3.00 MiB)" in out
    assert check(baseline, logdir) == 0  # 0.6%
    assert check(baseline, logdir, "--tolerance", "1MiB") == 1


def test_the_tolerance_is_in_the_file(baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    less, now = changed_logdir("base", tmp_path), changed_logdir("not_donated", tmp_path / "now")
    assert main(["baseline", str(less), "--write", str(baseline), "--tolerance", "1MiB"]) == 0
    assert json.loads(baseline.read_text())["tolerance"] == "1MiB"
    assert check(baseline, now) == 1
    assert check(baseline, now, "--tolerance", "4MiB") == 0
    assert main(["baseline", str(less), "--write", str(baseline)]) == 0  # keeps it
    assert check(baseline, now) == 1
    content = json.loads(baseline.read_text())
    del content["tolerance"]
    baseline.write_text(json.dumps(content))
    assert check(baseline, now) == 0  # 2%
    baseline.write_text(json.dumps(content | {"tolerance": "much"}))
    capsys.readouterr()
    assert check(baseline, now) == 2
    assert "A damaged baseline" in capsys.readouterr().err


def test_a_role_may_grow_by_as_many_bytes_as_the_peak(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = json.loads(baseline.read_text())["recordings"][0]
    roles, logdir = recording["roles_bytes"], changed_logdir("base", tmp_path)
    allowed = int(recording["peak_bytes"] * 1.02) - recording["peak_bytes"]
    largest, small = max(roles, key=roles.__getitem__), min(roles, key=roles.__getitem__)
    assert roles[small] < allowed < roles[largest]
    less = edited(baseline, roles_bytes=roles | {largest: roles[largest] - allowed, small: 0})
    assert check(less, logdir) == 0
    less = edited(baseline, roles_bytes=roles | {largest: roles[largest] - allowed - 1})
    capsys.readouterr()
    assert check(less, logdir, "--json") == 1
    (found,) = json.loads(capsys.readouterr().out)["checked"]
    assert (found["status"], found["exceeded"], found["exceeded_roles"]) == ("above", [], [largest])
    assert check(less, logdir) == 1
    assert f"above the baseline: role {largest}\n" in capsys.readouterr().out
    more = edited(baseline, roles_bytes={}, peak_bytes=2 * recording["peak_bytes"])
    assert check(more, logdir) == 0  # other arrays are live at the peak of so much less


def test_roles_are_left_out_where_that_is_asked_for(baseline: Path, tmp_path: Path) -> None:
    recording, logdir = json.loads(baseline.read_text())["recordings"][0], changed_logdir("base", tmp_path)
    less = edited(baseline, roles_bytes={})
    assert check(less, logdir) == 1
    assert check(less, logdir, "--no-roles") == 0
    for figure in ("peak_bytes", "reserved_bytes"):
        assert check(edited(baseline, **{figure: recording[figure] // 2}), logdir, "--no-roles") == 1


def test_a_small_change_changes_few_lines_and_the_file_has_no_numbers_of_the_compiler(
    baseline: Path, tmp_path: Path
) -> None:
    """Fusions are numbered over the whole program, so a change anywhere renumbers all of them."""
    now = tmp_path / "now.json"
    assert main(["baseline", str(changed_logdir("not_donated", tmp_path)), "--write", str(now)]) == 0
    before, after = baseline.read_text().splitlines(), now.read_text().splitlines()
    assert len(set(after) - set(before)) <= 20
    fusions = [row["fusion"] for row in json.loads(now.read_text())["recordings"][0]["fused"]]
    assert fusions and not any(re.search(r"\d", fusion) for fusion in fusions)


def test_less_memory_is_fine_and_says_how_to_keep_it(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = edited(baseline, peak_bytes=2**33, reserved_bytes=2**33)
    assert check(twice, changed_logdir("base", tmp_path)) == 0
    assert f"`tb-memplugin baseline LOGDIR --write {twice}`" in capsys.readouterr().out


def test_a_renamed_program_is_checked(baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = edited(baseline, name="jit_train")
    assert check(renamed, changed_logdir("not_donated", tmp_path), "--tolerance", "0.1%") == 1
    assert "`jit_step`, `HBM` (was `jit_train`)" in capsys.readouterr().out


def test_a_program_whose_name_arguments_and_layers_were_renamed_is_checked(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed = edited(baseline, name="jit_train")
    logdir = changed_logdir("renamed", tmp_path)
    now = tmp_path / "now.json"
    assert main(["baseline", str(logdir), "--write", str(now)]) == 0
    paths = [
        {row["path"] for row in json.loads(file.read_text())["recordings"][0]["arguments"]} for file in (renamed, now)
    ]
    assert paths[0] & paths[1] == {"batch/x", "batch/y"}
    capsys.readouterr()
    assert check(renamed, logdir, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    (found,) = answer["checked"]
    assert (found["name_before"], found["status"], found["causes"]) == ("jit_train", "within", [])
    assert answer["added"] == answer["missing"] == []


def test_a_missing_program_cannot_be_checked_and_a_new_one_is_no_failure(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(baseline.read_text())
    other = {**content["recordings"][0], "name": "jit_evaluate", "arguments": []}
    both = tmp_path / "both.json"
    both.write_text(json.dumps({**content, "recordings": [*content["recordings"], other]}))
    logdir = changed_logdir("base", tmp_path)
    assert check(both, logdir) == 2
    assert "`jit_evaluate`, `HBM`" in capsys.readouterr().out
    both.write_text(json.dumps({**content, "recordings": [other]}))
    assert check(both, logdir) == 2  # no recording is in the baseline
    assert "No recording is in the baseline" in capsys.readouterr().err


def test_no_cause_is_invented(baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check an array that grew although its shape and count are the same: only the difference is listed."""
    content = json.loads(baseline.read_text())
    recording = content["recordings"][0]
    row = next(row for row in recording["arrays"] if row["role"] == "activation")
    recording["peak_bytes"] -= row["bytes"] // 2
    recording["reserved_bytes"] -= row["bytes"] // 2
    row["bytes"] //= 2
    less = tmp_path / "less.json"
    less.write_text(json.dumps(content))
    assert check(less, changed_logdir("base", tmp_path)) == 1
    out = capsys.readouterr().out
    assert "No cause found. The largest differences are:" in out
    assert row["path"] in out


def test_markdown_escapes_names(baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(baseline.read_text())
    recording = content["recordings"][0]
    recording["name"] = HOSTILE
    recording["arguments"].append({"path": HOSTILE, "role": HOSTILE, "shape": HOSTILE, "arrays": 1, "bytes": 2**30})
    recording["arrays"].append({"path": HOSTILE, "role": "parameter", "shape": HOSTILE, "arrays": 1, "bytes": 2**30})
    recording["roles_bytes"][HOSTILE] = 2**30
    recording["peak_bytes"] = recording["reserved_bytes"] = 1
    hostile = tmp_path / "hostile.json"
    hostile.write_text(json.dumps(content))
    assert check(hostile, changed_logdir("base", tmp_path), "--markdown") == 1
    out = capsys.readouterr().out
    assert "img" in out  # it is shown
    outside = re.sub(r"`[^`\n]*`", "", out)
    assert "<img" not in outside and "javascript" not in outside and "@all" not in outside
    assert "\x1b" not in out and "\n# " not in out


def test_a_bounded_text_has_whole_lines_at_every_limit() -> None:
    lines = ["| | peak |", "|---|---:|", *(f"| {code(HOSTILE + 'é' * count)} | 1 |" for count in range(20))]
    whole = sum(len(line.encode()) + 1 for line in lines)
    for limit in range(200, 2 * whole):
        *kept, last = bounded(lines, limit)
        if last in lines:
            assert [*kept, last] == lines
            continue
        assert kept[-1] == "" and kept[:-1] == lines[: len(kept) - 1]
        assert last.startswith(f"{len(lines) - len(kept) + 1:,} more lines")


def test_the_printed_text_is_within_its_limit(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logdir = changed_logdir("not_donated", tmp_path)
    capsys.readouterr()
    assert check(baseline, logdir, "--tolerance", "0.1%", "--markdown", "--max-bytes", "300") == 1
    out = capsys.readouterr().out
    assert len(out.encode()) <= 300 and "more lines are left out" in out


@pytest.mark.parametrize("options", [("--max-bytes", "199"), ("--max-bytes", "300", "--json")])
def test_a_limit_that_has_no_effect_is_refused(
    options: tuple[str, ...], baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(baseline, baseline.parent, *options) == 2
    assert "give 200 or more, for text or --markdown" in capsys.readouterr().err


def test_options_of_a_baseline_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path), "--max-peak", "1GiB", "--max-bytes", "300"]) == 2
    assert "options of --baseline FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "Not a baseline"),
        (b"[" * 100_000, "Not a baseline"),
        (b"{}", "Not a baseline"),
        (b'{"schema_version": 2, "recordings": []}', "A baseline of schema version 2"),
        (b'{"schema_version": 1, "recordings": [{"name": "x"}]}', "A damaged baseline"),
        (b'{"schema_version": 1, "recordings": 5}', "A damaged baseline"),
    ],
)
def test_other_files_are_refused(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memory.json"
    file.write_bytes(content)
    assert check(file, DEMO / "train_step") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("key", ["layers", "copies"])
def test_a_row_without_layers_or_copies_is_refused(
    key: str, baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = json.loads(baseline.read_text())["recordings"][0]
    damaged = edited(baseline, arguments=[row | {key: 0} for row in recording["arguments"]])
    assert check(damaged, changed_logdir("base", tmp_path)) == 2
    assert "A damaged baseline" in capsys.readouterr().err


def test_only_a_baseline_is_overwritten(baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", str(DEMO / "train_step"), "--write", str(baseline)]) == 0
    notes = tmp_path / "notes.txt"
    notes.write_text("important")
    assert main(["baseline", str(DEMO / "train_step"), "--write", str(notes)]) == 2
    assert notes.read_text() == "important"
    assert "no baseline" in capsys.readouterr().err


@pytest.mark.parametrize("run", ["leak", "device_profile", "h100_train_step"])
def test_every_kind_of_recording_is_compared(run: str, tmp_path: Path) -> None:
    file = tmp_path / "memory.json"
    assert main(["baseline", str(DEMO / run), "--write", str(file)]) == 0
    assert check(file, DEMO / run) == 0
    assert file.stat().st_size < 60_000


def test_measured_memory_that_grew_lists_what_grew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "memory.json"
    for name, write in (("memory1.prof", True), ("memory9.prof", False)):
        logdir = tmp_path / name
        logdir.mkdir()
        (logdir / "memory.prof").write_bytes((DEMO / "device_profile_leak" / name).read_bytes())
        if write:
            assert main(["baseline", str(logdir), "--write", str(file)]) == 0
        else:
            assert check(file, logdir) == 1
    assert "+1.68 MiB" in capsys.readouterr().out
