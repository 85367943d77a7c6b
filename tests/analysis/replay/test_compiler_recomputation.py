"""Recomputation by the compiler itself, and bounds of what a change then saves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.recordings import Row, recording
from support.servers import DEMO

from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, allow_for_recomputation
from tb_memplugin.analysis.replay.compiler_recomputation import CompilerRecomputation, compiler_recomputation, repeats
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

MIB = 2**20


def program(again: str, capacity: int | None = None) -> Recording:
    """A value of 40 MiB read at the beginning and, computed under the name `again`, at the end; 100 MiB between."""
    rows = [
        Row(40 * MIB, 0, 2, name="tanh.1{0}"),
        Row(100 * MIB, 2, 6, name="dot.2"),
        Row(40 * MIB, 6, 8, name=f"{again}{{0}}"),
    ]
    made = recording(rows, 8)
    assert made.program is not None
    names = Text.of(["tanh.1", *"abcde", again, "end"])
    return replace(made, program=replace(made.program, name=names), capacity=capacity)


@pytest.mark.parametrize(
    "name",
    ["tanh.1.remat", "tanh.1.remat2", "tanh.1.remat.3", "tanh.1.remat2.1.remat", "tanh.1.remat_uncompressed"],
)
def test_without_it_the_first_result_would_stay(name: str) -> None:
    assert compiler_recomputation(program(name)) == CompilerRecomputation(1, 40 * MIB)


@pytest.mark.parametrize("name", ["tanh.2", "rematted.1", "tanh.1.clone", "other.remat"])
def test_other_names_are_no_recomputation_of_it(name: str) -> None:
    assert compiler_recomputation(program(name)).saved_bytes == 0


def piece(promised: int, new_peak: int, kind: AdviceKind = AdviceKind.DONATION) -> Advice:
    rows = np.empty(0, dtype=np.int64)
    return Advice(kind, "", "It saves.", "", rows, 0, Saving(new_peak + promised, promised, promised, promised))


def bounds(found: Advice) -> tuple[int, int]:
    return found.saving.at_least // MIB, found.saving.at_most // MIB


def test_a_change_may_save_less_by_what_the_compiler_then_keeps() -> None:
    found = program("tanh.1.remat", capacity=100 * MIB)
    assert bounds(allow_for_recomputation(found, piece(60 * MIB, 40 * MIB))) == (20, 60)
    assert bounds(allow_for_recomputation(found, piece(10 * MIB, 90 * MIB))) == (0, 10)
    assert "runs 1 operation twice" in allow_for_recomputation(found, piece(10 * MIB, 90 * MIB)).sentence


def test_in_a_program_that_still_does_not_fit_the_compiler_may_choose_others() -> None:
    found = program("tanh.1.remat", capacity=80 * MIB)
    assert bounds(allow_for_recomputation(found, piece(10 * MIB, 90 * MIB))) == (0, 10)


def test_at_least_what_did_not_fit_is_saved_by_a_change_after_which_it_fits() -> None:
    found = program("tanh.1.remat", capacity=70 * MIB)
    assert bounds(allow_for_recomputation(found, piece(45 * MIB, 55 * MIB))) == (30, 45)


def test_programs_without_it_promise_what_they_did() -> None:
    kept = piece(60 * MIB, 40 * MIB)
    assert allow_for_recomputation(program("tanh.2"), kept) is kept


def test_the_demo_that_does_not_fit_is_recomputed_in_part() -> None:
    [refused] = [
        recording
        for recording in listing_of_path(str(DEMO / "v5e_out_of_memory")).recordings
        if recording.program is not None and recording.is_main_memory
    ]
    found = compiler_recomputation(refused)
    # Of 97 marked instructions, 36 compute nothing, and the originals of 20 were removed.
    assert found.operations == 41 and found.saved_bytes > 2**30
    assert all(0 <= piece.saving.at_least <= piece.saving.expected for piece in advise(refused))


@pytest.mark.parametrize(
    ("names", "repeated"),
    [
        ("fusion.1 fusion.1.remat", "fusion.1.remat"),
        ("fusion.1 fusion.1.remat fusion.1.remat2", "fusion.1.remat fusion.1.remat2"),
        ("fusion.1.remat fusion.1.remat2 fusion.2", "fusion.1.remat2"),
        ("fusion.1.remat2.1.remat fusion.2.remat", ""),
        ("fusion.1 remat", ""),
    ],
)
def test_a_copy_whose_original_was_removed_repeats_nothing(names: str, repeated: str) -> None:
    found = repeats(Text.of(names.split()))
    assert [name for name, is_one in zip(names.split(), found, strict=True) if is_one] == repeated.split()
