"""Hints for an out-of-memory failure: one function per symptom, each with the bytes that it concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.oom import Cause, cause, missing_bytes
from tb_memplugin.analysis.usage.figures import share
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Allocations
from tb_memplugin.model.text import Text
from tb_memplugin.sizes import bytes_text

SHOWN = 4
WORTH = 0.05  # of what is used: less is not worth a sentence
HALF = 0.5  # of the memory in one buffer is a mistake far more often than a need
BACKWARD = ("jvp(", "transpose(")
ON_CHIP = ("VMEM", "SMEM", "GPU shared memory")
UNNAMED = "one without a name"

Bools = npt.NDArray[np.bool_]


def remedies(recording: Recording, failure: OutOfMemory) -> list[str]:
    """What to do, by what it would save, most first."""
    why = cause(failure)
    if why is Cause.HOST:
        return [
            "Give the job more host memory, or hold less of it: smaller batches and fewer workers in the input "
            "pipeline, no copy of the weights on the host, checkpoints written in pieces."
        ]
    if why is Cause.FRAGMENTED:
        return [_defragment(recording, failure)]
    found = sorted((item for tell_tale in TELL_TALES for item in tell_tale(recording)), key=lambda item: -item[0])
    texts = [text for size, text in found if size >= WORTH * max(peak(recording).bytes, 1)][:SHOWN]
    if why is Cause.TOO_LARGE and _memory(recording) not in ON_CHIP:
        split = f"Split it: {bytes_text(failure.asked)} at once never fits; shard it, or work in smaller batches."
        return [split, *texts]
    return texts or [_less(recording, failure)]


def _less(recording: Recording, failure: OutOfMemory) -> str:
    goal = missing_bytes(failure)
    much = f" by {bytes_text(goal)}" if goal else ""
    if failure.phase is OutOfMemoryPhase.LOAD:
        return (
            f"Free arrays before the program is loaded, or make the program smaller{much}: it is loaded in one piece."
        )
    if _memory(recording) in ON_CHIP:
        return f"Make what the kernel keeps there smaller{much}: smaller blocks, fewer stages of its pipeline, or bf16."
    if _of_torch(recording):
        return (
            f"Lower what is live{much}: a smaller batch with gradients summed over several, torch.utils.checkpoint, "
            "bf16, or sharding (FSDP). torch.cuda.memory._dump_snapshot writes a file that shows every tensor."
        )
    if recording.memory.startswith("ONNX"):
        return f"Lower what is live{much}: a smaller batch, or give the arena more (gpu_mem_limit, max_mem)."
    if "a tensor of shape" in failure.wanted_by:  # as TensorFlow says it
        return (
            f"Lower what is live{much}: a smaller batch, tf.recompute_grad, mixed precision, or more devices "
            "(tf.distribute). A profile of a smaller run shows which tensors these are."
        )
    return (
        f"Lower what is live{much}: a smaller batch, donated arguments, rematerialization (jax.checkpoint), "
        "bf16, or sharding over more devices. A profile of a smaller run shows which buffers these are."
    )


def _defragment(recording: Recording, failure: OutOfMemory) -> str:
    pieces = bytes_text(failure.free)
    if _of_torch(recording):
        return (
            f"Make the {pieces} one piece: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, tensors of equal sizes, "
            "or torch.cuda.empty_cache() before large allocations."
        )
    if _memory(recording).endswith("bfc"):
        return (
            f"Make the {pieces} one piece: allocate large arrays first and keep them, or let the driver place them "
            "(TF_GPU_ALLOCATOR=cuda_malloc_async; in JAX XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async)."
        )
    return f"Make the {pieces} one piece: allocate large arrays first, and delete arrays that are done with early."


def _memory(recording: Recording) -> str:
    """Without the number that it has where one text tells of several."""
    return recording.memory.partition(" (")[0]


def _of_torch(recording: Recording) -> bool:
    return _memory(recording).split(":")[0].lower() in ("cuda", "hip", "xpu", "mps")


def _oversized(recording: Recording) -> Iterator[tuple[int, str]]:
    """A buffer with more data than half the memory."""
    rows, capacity = recording.allocations, recording.capacity
    if not capacity or not len(rows):
        return
    row = int(np.argmax(np.where(_where(rows.shape, bool), rows.requested, 0)))
    size = int(rows.requested[row])
    if size > HALF * capacity and rows.shape[row]:
        yield (
            size,
            f"One buffer, {_name(recording, row)} {rows.shape[row]}, is {bytes_text(size)}, "
            f"{share(size, capacity):.0%} of the memory: most often a sharding that is missing, so that every device "
            "holds all of it, or a jax.debug.print that was left in.",
        )


def _padding(recording: Recording) -> Iterator[tuple[int, str]]:
    rows = recording.allocations
    wasted = rows.size - rows.requested
    total = int(wasted.sum())
    if total:
        row = int(np.argmax(wasted))
        yield (
            total,
            f"{bytes_text(total)} is padding: {_name(recording, row)} {rows.shape[row]} is "
            f"{bytes_text(int(rows.requested[row]))} of data in {bytes_text(int(rows.size[row]))}. Make its minor "
            "dimension a multiple of 128 and the next one a multiple of 8, or make a large dimension the minor one.",
        )


def _outputs(recording: Recording) -> Iterator[tuple[int, str]]:
    for caveat in recording.caveats:
        if caveat.code == "outputs_not_shared" and caveat.bytes:
            yield (
                caveat.bytes,
                f"{bytes_text(caveat.bytes)} of outputs has memory of its own: donate the arguments that they "
                "replace (donate_argnums of jax.jit).",
            )


def _others(recording: Recording) -> Iterator[tuple[int, str]]:
    rows = recording.allocations
    if _of_torch(recording):
        for row in np.flatnonzero(_where(rows.name, lambda name: name.startswith("process "))).tolist():
            size = int(rows.charge[row])
            yield size, f"{bytes_text(size)} is {rows.name[row]}: end it if it is an old run, or use another device."


class _Listed(NamedTuple):
    """A tell-tale in the buffers that a text lists: which of them, and what to do."""

    which: Callable[[Allocations], Bools]
    halved: bool  # half of their bytes stay
    text: str


LISTED = (
    _Listed(
        lambda rows: _where(rows.name, lambda name: name == "SparseCore"),
        False,
        "{} is the SparseCore's: lower feature_width or max_unique_nz_per_row, or work on fewer tables at once "
        "(--xla_sc_num_serialized_tables_to_optimize_hbm).",
    ),
    _Listed(
        lambda rows: _where(rows.scope, lambda scope: any(mark in scope for mark in BACKWARD)),
        False,
        "{} of the buffers listed are made for the backward pass or kept for it: put jax.checkpoint around the layers, "
        "or use a smaller batch.",
    ),
    _Listed(
        lambda rows: _where(rows.dtype, lambda dtype: dtype == "f32"),
        True,
        "{} of the buffers listed are f32: as bf16 they would be half of that.",
    ),
    _Listed(
        lambda rows: rows.role == Role.PARAMETER,
        True,
        "{} are arguments: sharded over two devices they are half of that on each.",
    ),
)


def _listed(recording: Recording) -> Iterator[tuple[int, str]]:
    rows = recording.allocations
    for tell_tale in LISTED:
        size = int(rows.charge[tell_tale.which(rows)].sum())
        if size:
            yield size // 2 if tell_tale.halved else size, tell_tale.text.format(bytes_text(size))


TELL_TALES = (_others, _oversized, _padding, _outputs, _listed)


def _where(text: Text, holds: Callable[[str], bool]) -> Bools:
    """Rows whose text is such: asked once per text, not per row."""
    known = np.array([holds(text.strings[code]) for code in range(len(text.strings))] + [holds("")], dtype=bool)
    found: Bools = known[text.codes]  # -1 is the empty text, and the last of them
    return found


def _name(recording: Recording, row: int) -> str:
    rows = recording.allocations
    return rows.scope[row] or rows.name[row] or UNNAMED
