"""Buffers listed in a text, as columns at one instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.source_tables import ProgramChunks
from tb_memplugin.model.tables import Allocations, Regions, Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder

MAX_TOTAL_BYTES = 2**53  # larger sums would be inexact as floats, and no memory is that large


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer described by name. Sizes in bytes."""

    size: int
    requested: int | None = None  # without padding; None: equal to `size`
    name: str = ""
    op: str = ""
    scope: str = ""
    shape: str = ""
    role: Role = Role.UNKNOWN
    source: tuple[str, int] | None = None  # file, line


@dataclass(frozen=True, slots=True)
class Rows:
    """Named buffers, or an allocator's chunks with addresses."""

    allocations: Allocations = field(default_factory=lambda: table([])[0])
    regions: Regions = field(default_factory=lambda: table_builder.no_regions())
    stacks: Stacks = field(default_factory=lambda: table([])[1])
    program_chunks: ProgramChunks | None = None

    @property
    def bytes(self) -> int:
        return int(self.allocations.charge.sum())


def named_buffers(buffers: Sequence[Buffer]) -> Rows:
    """Build rows from named buffers."""
    allocations, stacks = table(buffers)
    return Rows(allocations, table_builder.no_regions(), stacks)


def table(buffers: Sequence[Buffer]) -> tuple[Allocations, Stacks]:
    """Build allocations, and stacks of one frame each from the buffers' source lines."""
    sources = list(dict.fromkeys(buffer.source for buffer in buffers if buffer.source))
    frame = {source: number for number, source in enumerate(sources)}
    shapes = [buffer.shape for buffer in buffers]
    allocations = table_builder.allocations(
        _int64([buffer.size for buffer in buffers]),
        requested=_int64([buffer.size if buffer.requested is None else buffer.requested for buffer in buffers]),
        role=np.array([int(buffer.role) for buffer in buffers], dtype=np.uint8),
        stack=np.array([frame.get(buffer.source, -1) if buffer.source else -1 for buffer in buffers], dtype=np.int32),
        name=Text.of([buffer.name for buffer in buffers]),
        shape=Text.of(shapes),
        dtype=Text.of([dtype_of(shape) for shape in shapes]),
        op=Text.of([buffer.op for buffer in buffers]),
        scope=Text.of([buffer.scope for buffer in buffers]),
    )
    stacks = Stacks(
        parent=np.full(len(sources), -1, dtype=np.int32),
        function=Text.of([""] * len(sources)),
        file=Text.of([file for file, _ in sources]),
        line=np.array([line for _, line in sources], dtype=np.int32),
    )
    return allocations, stacks


def segments(base: I64, size: I64) -> Regions:
    """Build regions from an allocator's segments, identified by address."""
    return Regions(base, size, np.full(len(size), int(RegionKind.TEMPORARY), dtype=np.uint8))


def dtype_of(shape: str) -> str:
    """Return the dtype of a shape, `bf16` of `bf16[4,512]{1,0}`; empty for a tuple."""
    dtype, bracket, _ = shape.partition("[")
    return dtype if bracket and dtype.isalnum() else ""


def _int64(values: list[int]) -> I64:
    return np.array(values, dtype=np.int64)
