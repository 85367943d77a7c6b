"""The chips whose memory has room for what a recording needs."""

from __future__ import annotations

from collections.abc import Sequence

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import ACCELERATORS, GPUS
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.compare.budget import need
from tb_memplugin.questions.fit.answer import ChipFitJson, FitAnswerJson
from tb_memplugin.targets import capacity_of, chip_of, memory_fraction, usable_by_torch

OF_PROGRAM = (
    "What the program reserves, as compiled: a compiler for another chip chooses other layouts and fusions, and more "
    "devices to shard over lower it. `tb-memplugin fit FILE.py:FUNCTION --on TARGET` compiles the step for a chip."
)
OF_PEAK = "The recorded peak: kernels of another chip need other workspaces, and an allocator needs room beside it."


def chips_that_fit(recording: Recording, asked: Asked, targets: Sequence[str] = ()) -> FitAnswerJson:
    """Compare what a recording needs with the memory of chips: those of `targets`, or all.

    Those with room come first, the smallest memory first. InputError for an unknown target, and for a recording that is
    not of a device's main memory.
    """
    if not recording.is_main_memory:
        raise InputError("Not the main memory of a device", recording.id, "choose a recording of HBM or a GPU's memory")
    needed = need(recording)
    limits = {
        chip: usable_by_torch(chip) if chip in GPUS and recording.kind.is_torch else capacity_of(chip)
        for chip in (dict.fromkeys(map(chip_of, targets)) or ACCELERATORS)
    }
    found: list[ChipFitJson] = [
        {
            "target": chip,
            "fits": limit >= needed["needed_bytes"],
            "limit_bytes": limit,
            "left_bytes": limit - needed["needed_bytes"],
        }
        for chip, limit in limits.items()
        if limit is not None
    ]
    if not found:
        raise InputError(
            "The limit of this target is the memory of its host", "cpu", f"name one of {', '.join(ACCELERATORS)}"
        )
    advisable = len(recording.allocations) > 0 and not all(chip["fits"] for chip in found)
    return asked.answer(
        FitAnswerJson,
        largest=[],
        candidates=[],
        recording=needed,
        chips=sorted(found, key=lambda chip: (not chip["fits"], abs(chip["left_bytes"]))),
        caveats=[
            OF_PROGRAM if recording.kind.has_program else OF_PEAK,
            *([_gpu_caveat(recording)] if GPUS.keys() & limits.keys() else []),
        ],
        problems=[],
        next=[
            asked.question("advice", "changes that lower the peak", recording.id) if advisable else None,
            asked.question("explain", "what takes the memory", recording.id),
        ],
    )


def _gpu_caveat(recording: Recording) -> str:
    if recording.kind.is_torch:
        return "The limit of a GPU is its memory without 751 MiB that CUDA takes; libraries may take more."
    part = f"{memory_fraction():.0%} of its memory"
    return f"The limit of a GPU is {part}, which JAX preallocates: XLA_PYTHON_CLIENT_MEM_FRACTION"
