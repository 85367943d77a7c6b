"""The chips that have room for a recording, and the questions that follow from candidates."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from support.fits import candidate, reserving, write_candidate, write_search
from support.schemas import validate
from support.servers import DEMO
from support.torch_training import Training

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.cli import main
from tb_memplugin.model.accelerators import ACCELERATORS
from tb_memplugin.questions.asking.selectors import choose_main_memory
from tb_memplugin.targets import parse_target, slices

STEP = DEMO / "v5e_out_of_memory"
NAME = "v5e_out_of_memory||jit_train_step|HBM"


def fit(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    status = main(["fit", *map(str, arguments), "--json"])
    answer = json.loads(capsys.readouterr().out)
    validate(answer, "error" if "error" in answer else "fit")
    return status, answer


def test_what_a_program_reserves_is_compared_with_the_limits_that_fit_compiles_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (program,) = [one for one in listing_of_path(str(STEP)).recordings if one.id == NAME]
    status, answer = fit(capsys, STEP, f"--recording={NAME}", "--top=all")
    assert status == 0 and answer["recording"]["figure"] == "reserved" and answer["caveats"]
    needed = answer["recording"]["needed_bytes"]
    assert needed == sum(program.regions.size[program.regions.kind != 8])  # not those on the stacks of threads
    assert {chip["target"] for chip in answer["chips"]} == set(ACCELERATORS)
    for chip in answer["chips"]:
        limit = slices(chip["target"])[0].capacity
        assert limit is not None
        found = (chip["limit_bytes"], chip["left_bytes"], chip["fits"])
        assert found == (limit, limit - needed, needed <= limit)
    fitting = [chip["limit_bytes"] for chip in answer["chips"] if chip["fits"]]
    assert fitting == sorted(fitting) and [chip["fits"] for chip in answer["chips"]][: len(fitting)] == [True] * len(
        fitting
    )


def test_targets_are_chips_with_or_without_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    for text, fits in (("v5e", False), ("v5e:4x4", False), ("v7x", True), ("H100:8", True)):
        status, answer = fit(capsys, STEP, f"--recording={NAME}", "--on", text)
        (chip,) = answer["chips"]
        assert (chip["fits"], status) == (fits, 0 if fits else 1)
        target = parse_target(text)
        assert target is None or chip["limit_bytes"] == target.capacity
    status, answer = fit(capsys, STEP, f"--recording={NAME}", "--on=v5e", "--on=v5p")
    assert [chip["target"] for chip in answer["chips"]] == ["v5p", "v5e"] and status == 1
    status, answer = fit(capsys, STEP, f"--recording={NAME}", "--on=v5e", "--on=v5p", "--top=1")
    assert [chip["fits"] for chip in answer["chips"]] == [True] and status == 1  # one that is not listed does not fit


def test_a_gpu_has_all_of_its_memory_for_pytorch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    snapshot = tmp_path / "rank0.pickle"
    snapshot.write_bytes(pickle.dumps(Training(2, clears=True).snapshot()))
    _, torch = fit(capsys, snapshot, "--on=h100")
    _, jax = fit(capsys, STEP, f"--recording={NAME}", "--on=h100")
    assert torch["chips"][0]["limit_bytes"] > jax["chips"][0]["limit_bytes"] and torch["caveats"] != jax["caveats"]


@pytest.mark.parametrize(("name", "commands"), [(NAME, ["advice", "explain"]), ("OOM in", ["explain"])])
def test_further_questions_have_answers(name: str, commands: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Ask for advice where there are buffers that it could be about."""
    further = fit(capsys, STEP, f"--recording={name}", "--on=v5e")[1]["next"]
    assert [one["command"][1] for one in further] == commands
    for one in further:
        assert main(one["command"][1:]) == 0


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--recording=v5e_out_of_memory||jit_train_step|VMEM",), "Not the main memory of a device"),
        (("--on=v6",), "No such target"),
        (("--on=cpu",), "The limit of this target is the memory of its host"),
        (("--set=batch=8",), "No such candidates"),
        (("--vary=batch",), "Nothing to compile"),
        (("--budget=1GiB",), "Nothing to compile"),
    ],
)
def test_what_cannot_be_answered(arguments: tuple[str, ...], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, answer = fit(capsys, STEP, *arguments)
    assert (status, answer["error"]["what"]) == (2, what)


def test_a_chip_selects_candidates_of_all_its_sizes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for target in ("v5e:2x2", "v5e:4x4", "v6e:2x2"):
        write_candidate(tmp_path, reserving(candidate(target, batch=8), 5.0))
    found = [fit(capsys, tmp_path, *options)[1] for options in (("--on=v5e",), ("--on=v5e:4x4", "--on=v6e"), ())]
    assert [sorted(one["target"] for one in answer["candidates"]) for answer in found] == [
        ["v5e:2x2", "v5e:4x4"],
        ["v5e:4x4", "v6e:2x2"],
        ["v5e:2x2", "v5e:4x4", "v6e:2x2"],
    ]


def test_only_programs_that_are_there_are_explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_candidate(tmp_path / "records", reserving(candidate(batch=8), 5.0))
    assert fit(capsys, tmp_path / "records")[1]["next"] == []
    write_search(tmp_path / "programs")
    (explain, *_) = fit(capsys, tmp_path / "programs")[1]["next"]
    assert main(explain["command"][1:]) == 0


def test_a_damaged_record_is_the_error_of_a_logdir_without_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = write_candidate(tmp_path, reserving(candidate(batch=8), 5.0))
    (folder / "fit.json").write_text("{")
    status, answer = fit(capsys, tmp_path)
    assert status == 2 and answer["error"]["where"] == str(folder / "fit.json")


def test_by_default_the_main_memory_is_compared() -> None:
    every = {one.memory: one for one in listing_of_path(str(STEP)).recordings if one.program is not None}
    main_memory, on_chip = every["HBM"], every["VMEM"]
    assert choose_main_memory([on_chip, main_memory], None, "path") is main_memory
    assert choose_main_memory([on_chip, main_memory], on_chip.id, "path") is on_chip
    assert choose_main_memory([on_chip], None, "path") is on_chip
