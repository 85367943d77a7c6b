"""Scans of stored programs with their bodies recomputed, and loops in schedules."""

from __future__ import annotations

import numpy as np
import pytest
from programs.stored import Stored, stored_programs

from tb_memplugin.analysis.advice.jax import rematerialization
from tb_memplugin.analysis.replay.schedule_graph import program_loops
from tb_memplugin.model.recording import Recording

STORED = {str(stored): stored for stored in stored_programs()}
FORWARD_ONLY = ("decode_step", "evaluate")
# Scans over layers, over time and over the devices of a ring, on TPUs and a GPU, that stored programs save with.
SCANS = {
    "llama_fsdp.v5e": 4, "lm_scanned.h100": 12, "lm_scanned.v5e": 12,
    "lora.h100": 4, "lora.v5e": 4, "lstm.v5e": 256, "ring_attention.v5p": 4,
}  # fmt: skip


def main_memory(stored: Stored) -> Recording:
    return next(r for r in stored.recordings if r.program is not None and r.program.memory_space == 0)


@pytest.mark.parametrize("name", SCANS)
def test_the_body_of_a_scan_with_a_backward_pass_is_recomputed(name: str) -> None:
    stored = STORED[name]
    pieces = [p for p in rematerialization.advise(main_memory(stored)) if p.title.startswith("Rematerialize the body")]
    assert [piece.title.split(" over ")[1] for piece in pieces] == [f"{SCANS[name]} iterations"]
    saving = pieces[0].saving
    assert 0 < saving.at_least <= saving.expected <= saving.at_most
    change = stored.facts["changes"].get("rematerialization")
    if change is not None:  # of what is reserved, so with gaps between buffers
        real = stored.facts["reserved"]["0"] - change["reserved"]["0"]
        assert 0.8 <= saving.expected / real <= 1.35


@pytest.mark.parametrize("name", [name for name in STORED if name.split(".")[0] in FORWARD_ONLY])
def test_nothing_is_recomputed_without_a_backward_pass(name: str) -> None:
    assert not list(rematerialization.advise(main_memory(STORED[name])))


@pytest.mark.parametrize("name", [name for name in STORED if name.split(".")[0] == "accumulated"])
def test_a_scan_over_microbatches_is_not_recomputed(name: str) -> None:
    pieces = list(rematerialization.advise(main_memory(STORED[name])))
    assert not [piece.title for piece in pieces if piece.title.startswith("Rematerialize the body")]


@pytest.mark.parametrize("name", STORED)
def test_loops_nest(name: str) -> None:
    recording = main_memory(STORED[name])
    loops = program_loops(recording)
    assert recording.program is not None
    code = recording.program.computation.codes
    assert (np.diff(loops.position) > 0).all()
    assert (loops.first < loops.position).all()
    for number, (first, position) in enumerate(zip(loops.first.tolist(), loops.position.tolist(), strict=True)):
        assert code[position] not in code[first:position]  # what calls the body runs after it
        inside = loops.innermost[first:position]
        assert (inside >= 0).all() and (inside <= number).all()
        assert loops.parent[number] < 0 or loops.parent[number] > number
