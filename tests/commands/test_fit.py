"""`fit` and `check --fit`, with the CPU's compiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.servers import TESTS

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.cli import main

STEP = f"{TESTS / 'fit' / 'step.py'}:step"


def test_the_largest_batch_within_a_budget_is_compiled_and_the_next_one_is_not_within_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ["fit", STEP, "--on", "cpu:2", "--vary", "batch=64:4096:64", "--budget", "4MiB", "--to", str(tmp_path)]
    assert main([*question, "--json", "--top", "all"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (largest,) = answer["largest"]
    fits = {one["knobs"]["batch"]: one["fits"] for one in answer["candidates"]}
    assert fits[largest["value"]] and not fits[largest["value"] + 64]
    assert all(one["fits"] == (one["reserved_bytes"] <= 4 * 2**20) for one in answer["candidates"])
    programs = {one.run: one for one in listing_of_path(str(tmp_path)).recordings}
    assert {one["run"] for one in answer["candidates"]} == set(programs)


def test_choices_make_a_table_and_an_error_of_one_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", STEP, "--on", "cpu:1", "--vary", "remat=none,fulll", "--to", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    table = printed.out.splitlines()
    assert [line.split()[:2] for line in table[:3]] == [["remat", "fits"], ["none", "yes"], ["fulll", "error"]]
    assert "ValueError: remat=fulll: none or full" in printed.out
    assert "in step" in printed.err and "tb_memplugin/fit" not in printed.err


def test_check_says_by_how_much_a_step_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    question = ["check", "--fit", STEP, "--on", "cpu:1", "--set", "batch=64"]
    assert main([*question, "--max-peak", "1GiB"]) == 0
    assert "fits: it reserves" in capsys.readouterr().out
    assert main([*question, "--max-peak", "1MiB"]) == 1
    printed = capsys.readouterr().out
    assert "does not fit" in printed and "parameter" in printed


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["fit", STEP], "--on"),
        (["fit", STEP, "--on", "v9"], "v9"),
        (["fit", "nothing.py:step", "--on", "cpu:1"], "nothing.py"),
        (["fit", STEP, "--on", "cpu:1", "--vary", "batch=9:3"], "empty range"),
        (["check"], "PATH or --fit"),
        (["check", "somewhere"], "--max-peak"),
    ],
)
def test_wrong_calls_get_a_line(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert text in error and len(error.splitlines()) == 1


CHANGED = TESTS / "fit" / "changed_steps.py"
DONATED, PARTS = "Donate params, momentum", "Set microbatches=2"


def test_try_prints_what_each_piece_of_advice_gives_as_if_changed_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(batch: str, *more: str) -> dict[str, Any]:
        question = ["fit", f"{CHANGED}:with_microbatches", "--on", "cpu:1", "--vary", batch, "--budget", "80MiB"]
        assert main([*question, "--to", str(tmp_path), "--json", "--top", "all", *more]) in (0, 1)
        return dict(json.loads(capsys.readouterr().out))

    answer = ask("batch=64:8192:64", "--try")
    tried = {one["title"]: one for one in answer["tried"]}
    assert all(one["error"] is None for one in tried.values())
    changed = {(one["knobs"]["batch"], *one["changes"]): one for one in answer["candidates"]}
    for title, by_hand, step in ((DONATED, "donated=True", 64), (PARTS, "microbatches=2", 64)):
        one = tried[title]
        assert one["saving_bytes"] > 0 and one["new_value"] > one["value"]
        made_by_hand = ask(f"batch={one['new_value']},{one['new_value'] + step}", "--set", by_hand)["candidates"]
        largest, refused = sorted(made_by_hand, key=lambda made: int(made["knobs"]["batch"]))
        assert (largest["fits"], refused["fits"]) == (True, False)
        for made in (largest, refused):
            same = changed[made["knobs"]["batch"], *one["changes"]]
            assert same["reserved_bytes"] == made["reserved_bytes"]
    runs = {one.run for one in listing_of_path(str(tmp_path)).recordings}
    assert {one["run"] for one in tried.values() if one["run"]} <= runs
