"""`plan`, with the CPU's compiler, and of a logdir."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.servers import TESTS

from tb_memplugin.cli import main
from tb_memplugin.fit.sweep import write_record
from tb_memplugin.model.fit import Candidate, Outcome

STEP = f"{TESTS / 'fit' / 'step.py'}:step"


def test_choices_are_compiled_for_a_batch_of_all_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = ["plan", STEP, "--on", "cpu:2", "--global-batch", "64", "--vary", "remat=none,full"]
    assert main([*question, "--to", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    own = [one for one in answer["candidates"] if not one["changes"]]
    assert {one["knobs"]["remat"] for one in own} == {"none", "full"}
    assert all(one["knobs"]["batch"] == 64 and one["step_seconds"] is None for one in own)
    assert main(["plan", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["candidates"] == answer["candidates"]


def test_a_logdir_is_planned_without_compiling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for remat, gib, seconds in (("none", 12, 1.0), ("full", 6, 1.3), ("dots", 20, 0.9)):
        outcome = Outcome(
            Candidate("gpt.py:step", "v5e:4x4", (("batch", 64), ("remat", remat))),
            reserved_bytes=gib << 30, limit_bytes=16 << 30, capacity_bytes=16 << 30, peak_bytes=gib << 30,
            step_seconds=seconds, bound_seconds={"memory": seconds}, tokens=64 * 1024, run=remat,
        )  # fmt: skip
        write_record(outcome, tmp_path)
    assert main(["plan", str(tmp_path), "--price", "v5e=1.2"]) == 0
    printed = capsys.readouterr().out
    assert "The fastest that fits, as estimated: v5e:4x4 batch=64, remat=none, 66,000 tokens/s" in printed
    assert "remat=none in place of full, as estimated: a step takes 23% less time and 6.00 GiB more memory" in printed
    assert "remat=dots does not fit, 4.000 GiB too large" in printed
    assert main(["plan", str(tmp_path), "--set", "remat=dots"]) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([STEP, "--on", "cpu:1", "--global-batch", "0"], "No batch"),
        ([STEP, "--on", "cpu:1", "--price", "v5e=much"], "write CHIP=PRICE"),
        ([STEP, "--on", "cpu:1", "--price", "v99=1"], "No such target"),
        ([str(TESTS / "data"), "--vary", "batch"], "Nothing to compile"),
        ([str(TESTS / "fit"), "--on", "v5e"], "compiles some"),
    ],
)
def test_wrong_calls_get_a_line(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *arguments]) == 2
    assert text in capsys.readouterr().err
