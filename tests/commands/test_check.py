"""`tb-memplugin check` and errors on standard input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.command_line import run as tb_memplugin
from support.hand_built import MIB, Handmade
from support.servers import DEMO, TESTS

TEXTS = TESTS / "data" / "oom_texts"
TRAIN = str(DEMO / "train_step")
OOM = str(DEMO / "oom")


def test_within_the_budget() -> None:
    done = tb_memplugin("check", TRAIN, "--max-peak", "70GiB")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Within 70.0 GiB: ")


def test_above_the_budget_says_which_by_how_much_and_why() -> None:
    done = tb_memplugin("check", OOM, "--max-peak", "1000GiB")
    assert (done.returncode, done.stderr) == (1, b"")
    out = done.stdout.decode()
    assert out.startswith("Above 0.98 TiB by 4 B: cpu|localhost|jit_oom(0)|HBM reserves 0.98 TiB")
    assert "Peak 0.98 TiB" in out
    assert out.rstrip().endswith("1 of 1 recording is above 0.98 TiB.")


def test_json_says_the_same() -> None:
    done = tb_memplugin("check", OOM, "--max-peak", "1000GiB", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert answer["limit_bytes"] == 1000 * 2**30
    assert answer["checked"] == [
        {"id": broken["id"], "needed_bytes": broken["needed_bytes"], "figure": "reserved", "caveats": []}
        for broken in answer["broken"]
    ]
    assert [broken["above_bytes"] for broken in answer["broken"]] == [4]
    assert answer["broken"][0]["explanation"][0].startswith("Peak 0.98 TiB")


def test_the_budget_is_the_most_that_is_allowed() -> None:
    peak = 1000 * 2**30 + 4
    assert tb_memplugin("check", OOM, "--max-peak", str(peak)).returncode == 0
    assert tb_memplugin("check", OOM, "--max-peak", str(peak - 1)).returncode == 1


def test_only_recordings_that_match_count() -> None:
    """Match by a regular expression anywhere in the id."""
    assert tb_memplugin("check", str(DEMO), "--max-peak", "16GiB").returncode == 1
    assert (
        tb_memplugin("check", str(DEMO), "--max-peak", "16GiB", "--recording", r"^(train|leak)\w*/.*jit_").returncode
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/no/such/folder", "--max-peak", "1GiB"], b"/no/such/folder"),
        ([TRAIN, "--max-peak", "70G"], b"write 70GiB (1024) or 70GB (1000)"),
        ([TRAIN, "--max-peak", "much"], b"Not a size"),
        ([TRAIN], b"--max-peak"),
        ([TRAIN, "--max-peak", "1GiB", "--recording", "("], b"Not a regular expression"),
        ([TRAIN, "--max-peak", "1GiB", "--recording", "jit_nothing"], b"No recordings to check: jit_nothing"),
    ],
)
def test_bad_input_is_no_pass(arguments: list[str], message: bytes) -> None:
    done = tb_memplugin("check", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1 and message in done.stderr


def test_what_cannot_be_read_is_no_pass(tmp_path: Path) -> None:
    run = tmp_path / "plugins/profile/run"
    shutil.copytree(DEMO / "train_step/plugins/profile/cpu", run)
    (run / "damaged.xplane.pb").write_bytes(b"not a profile")
    done = tb_memplugin("check", str(tmp_path), "--max-peak", "70GiB")
    assert done.returncode == 2 and b"damaged.xplane.pb" in done.stderr


def test_of_an_error_what_was_asked_counts_as_well() -> None:
    """Expect 57,704,192 bytes in use plus the 32 MiB requested: 91,258,624."""
    text = (TEXTS / "bfc_tensorflow.txt").read_bytes()
    assert tb_memplugin("check", "-", "--max-peak", "91258624", stdin=text).returncode == 0
    done = tb_memplugin("check", "-", "--max-peak", "91258623", stdin=text)
    assert done.returncode == 1 and b"by 1 B" in done.stdout and b"23.0 MiB more must be free" in done.stdout


def test_explain_reads_an_error_from_standard_input() -> None:
    done = tb_memplugin("explain", "-", stdin=(TEXTS / "tpu_compile.txt").read_bytes())
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert lines[0] == "The program needs 19.3 GiB of HBM, which has 15.8 GiB. That is 3.50 GiB too much."
    assert "4.00 GiB  20.8%      1  -" in done.stdout.decode()


def test_explain_and_summary_read_an_error_from_a_file(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    shutil.copy(TEXTS / "bfc_tensorflow.txt", log)
    answer = json.loads(tb_memplugin("explain", str(log), "--json", "--top=all").stdout)
    assert answer["out_of_memory"]["reason"] == "too much memory is in use"
    assert answer["out_of_memory"]["missing_bytes"] == 24_149_760  # 33,554,432 - 9,404,672
    assert answer["headline"] == " ".join(answer["out_of_memory"]["sentences"][:2])
    assert sum(group["bytes"] for group in answer["groups"]) + answer["unexplained"]["bytes"] == 57_704_192
    (recording,) = json.loads(tb_memplugin("summary", str(log), "--json").stdout)["recordings"]
    assert (recording["kind"], recording["axis"], recording["peak_bytes"]) == ("oom", "INSTANT", 57_704_192)
    assert (recording["reserved_bytes"], recording["capacity_bytes"]) == (62 * 2**20, 64 * 2**20)


def test_a_text_without_an_error_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "fine.log").write_text("step 1 loss 2.0\n")
    for arguments, stdin in ((["-"], b"step 1 loss 2.0\n"), ([str(tmp_path / "fine.log")], b"")):
        done = tb_memplugin("explain", *arguments, stdin=stdin)
        assert done.returncode == 2 and b"No out-of-memory error in the text" in done.stderr


def test_of_a_long_log_the_end_is_read() -> None:
    log = (b"step 1 loss 2.0".ljust(63) + b"\n") * (3 * 2**17) + b"exit code 137\n"  # 24 MiB and 14 bytes
    (recording,) = json.loads(tb_memplugin("summary", "-", "--json", stdin=log).stdout)["recordings"]
    assert {caveat["code"]: caveat["bytes"] for caveat in recording["caveats"]}["only_end_read"] == 8 * 2**20 + 14


def test_names_in_a_text_do_not_reach_the_terminal_as_controls() -> None:
    name = "jit\x1b]0;owned\x07\x9b31m"
    text = f"Error loading program '{name}': Attempting to allocate 1.00G. That was not possible. There are 0B free."
    done = tb_memplugin("explain", "-", stdin=text.encode())
    assert done.returncode == 0 and not any(byte < 32 and byte != 10 for byte in done.stdout)
    assert "\x9b" not in done.stdout.decode()


def test_a_program_must_fit_with_what_it_reserves(tmp_path: Path) -> None:
    """Compare as compilers do: a program that needs 1 MiB at its peak and reserves 3 MiB does not fit in 2 MiB."""
    made = Handmade()
    made.allocation((made.buffer(made.instruction("fusion"), MIB), 0), size=3 * MIB)
    path = tmp_path / "step.hlo_proto.pb"
    path.write_bytes(made.data)
    program = str(path)
    assert tb_memplugin("check", program, "--max-peak", "2MiB").returncode == 1
    within = tb_memplugin("check", program, "--max-peak", "3MiB")
    assert within.returncode == 0
    assert b"the largest reserves 3.00 MiB" in within.stdout
