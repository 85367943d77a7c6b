"""Symptoms in the buffers that an out-of-memory text lists: the bytes that each concerns, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak
from tb_memplugin.model.arrays import Mask
from tb_memplugin.model.caveats import CaveatCode
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Allocations
from tb_memplugin.sizes import bytes_text, percent_text

OVERSIZED_SHARE = 0.5  # a choice: one buffer above this share of the capacity is far more often a mistake than not
OUTSIDE_SHARE = 0.05  # a choice: contexts and libraries take less of a device
BACKWARD = ("jvp(", "transpose(")
UNNAMED = "an unnamed buffer"


def memory_name(recording: Recording) -> str:
    """Return the memory's name without the number that distinguishes several failures in one text."""
    return recording.memory.partition(" (")[0]


def torch_device(recording: Recording) -> str:
    """Return PyTorch's name for the kind of device, such as `cuda`; empty for an error that is not PyTorch's."""
    device = memory_name(recording).split(":")[0].lower()
    return device if device in ("cuda", "hip", "xpu", "mps", "npu", "musa", "mlu", "hpu") else ""


def _oversized_buffer(recording: Recording) -> Iterator[tuple[int, str]]:
    rows, capacity = recording.allocations, recording.capacity
    if not capacity or not len(rows):
        return
    row = int(np.argmax(np.where(rows.shape.nonempty, rows.requested, 0)))
    size = int(rows.requested[row])
    if size > OVERSIZED_SHARE * capacity and rows.shape[row]:
        yield (
            size,
            f"One buffer, {_name(recording, row)} {rows.shape[row]}, takes {bytes_text(size)}, "
            f"{percent_text(size, capacity)} of the memory. The usual reasons are a missing sharding, so that every "
            "device has the whole buffer, or a jax.debug.print.",
        )


def _padding(recording: Recording) -> Iterator[tuple[int, str]]:
    rows = recording.allocations
    padding = rows.size - rows.requested
    total = int(padding.sum())
    if total:
        row = int(np.argmax(padding))
        yield (
            total,
            f"{bytes_text(total)} is padding: {_name(recording, row)} {rows.shape[row]} has "
            f"{bytes_text(int(rows.requested[row]))} of data in {bytes_text(int(rows.size[row]))}. Make its minor "
            "dimension a multiple of 128 and the next one a multiple of 8, or make a large dimension the minor one.",
        )


def _outputs(recording: Recording) -> Iterator[tuple[int, str]]:
    for caveat in recording.caveats:
        if caveat.code is CaveatCode.OUTPUTS_NOT_SHARED and caveat.bytes:
            yield (
                caveat.bytes,
                f"{bytes_text(caveat.bytes)} of outputs does not reuse the memory of arguments: donate the arguments "
                "that they replace (donate_argnums of jax.jit).",
            )


def _other_processes(recording: Recording) -> Iterator[tuple[int, str]]:
    rows = recording.allocations
    if torch_device(recording):
        for row in np.flatnonzero(rows.name.where(lambda name: name.startswith("process "))).tolist():
            size = int(rows.charge[row])
            yield (
                size,
                f"{bytes_text(size)} is used by {rows.name[row]}: end it if it is an old run, or use another device.",
            )


def _outside_framework(recording: Recording) -> Iterator[tuple[int, str]]:
    rows, total = recording.allocations, recording.capacity
    if not torch_device(recording) or not total or not len(rows):
        return
    metal = int(rows.charge[rows.name.isin({"other Metal allocations"})].sum())
    size = metal or peak(recording).bytes - int(explained_bytes(recording)[0])
    if size > OUTSIDE_SHARE * total:
        holder, tool = ("MLX or Core ML", "Activity Monitor") if metal else ("NCCL or a driver's context", "nvidia-smi")
        yield (
            size,
            f"{bytes_text(size)} in use is not PyTorch's: other processes hold it, or this one outside of PyTorch, "
            f"such as {holder}. {tool if torch_device(recording) != 'hip' else 'rocm-smi'} lists the processes.",
        )


class _BufferGroup(NamedTuple):
    """Buffers with a common property, and what to do about them."""

    select: Callable[[Allocations], Mask]
    halves: bool  # the change saves half of their bytes, not all
    text: str


GROUPS = (
    _BufferGroup(
        lambda rows: rows.name.isin({"program"}),
        False,
        "{} is the program itself, mostly temporaries: a smaller batch, jax.checkpoint around the layers, or sharding "
        "of the activations lowers it.",
    ),
    _BufferGroup(
        lambda rows: rows.name.isin({"SparseCore"}),
        False,
        "{} is used by the SparseCore: lower feature_width or max_unique_nz_per_row, or process fewer tables at once "
        "(--xla_sc_num_serialized_tables_to_optimize_hbm).",
    ),
    _BufferGroup(
        lambda rows: rows.op_name.where(lambda scope: any(mark in scope for mark in BACKWARD)),
        False,
        "{} of the listed buffers belongs to the backward pass: put jax.checkpoint around the layers, or use a smaller "
        "batch.",
    ),
    _BufferGroup(
        lambda rows: rows.dtype.isin({"f32"}),
        True,
        "{} of the listed buffers is f32: bf16 halves it.",
    ),
    _BufferGroup(
        lambda rows: rows.role == Role.PARAMETER,
        True,
        "{} is arguments: sharding over two devices halves it on each.",
    ),
)


def _buffer_groups(recording: Recording) -> Iterator[tuple[int, str]]:
    rows = recording.allocations
    for group in GROUPS:
        size = int(rows.charge[group.select(rows)].sum())
        if size:
            yield size // 2 if group.halves else size, group.text.format(bytes_text(size))


SYMPTOMS = (_other_processes, _outside_framework, _oversized_buffer, _padding, _outputs, _buffer_groups)


def _name(recording: Recording, row: int) -> str:
    rows = recording.allocations
    return rows.op_name[row] or rows.name[row] or UNNAMED
