"""The parts that bound a program, on stored programs."""

from __future__ import annotations

import pytest
from programs.stored import Stored, stored_programs

from tb_memplugin.analysis.ownership.peak_parts import MAX_PARTS, peak_parts
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording


def main_memory(stored: Stored) -> Recording:
    return next(recording for recording in stored.recordings if recording.is_main_memory)


@pytest.mark.parametrize(
    ("name", "target", "part"),
    [
        ("linen_lm", "h100", "activations of Block_*"),
        ("lm_scanned", "h100", "activations of the scan in logits"),
        ("lstm", "v5e", "activations of the scan in layer"),
        ("mlp_adam", "v6e", "activations of layer"),
        ("decode_step", "v5e", "state cache"),
        ("generate_int8", "v6e", "parameters"),
    ],
)
def test_a_large_part_has_its_role_and_its_place(name: str, target: str, part: str) -> None:
    parts = peak_parts(main_memory(Stored(name, target)))
    assert part in [one.name for one in parts[:2]]


@pytest.mark.parametrize("stored", stored_programs()[::3], ids=str)
def test_parts_are_disjoint_and_largest_first(stored: Stored) -> None:
    recording = main_memory(stored)
    parts = peak_parts(recording)
    assert 0 < len(parts) <= MAX_PARTS
    assert [one.bytes for one in parts] == sorted((one.bytes for one in parts), reverse=True)
    assert sum(one.bytes for one in parts) <= peak(recording).bytes
    assert len({one.name for one in parts}) == len(parts)
