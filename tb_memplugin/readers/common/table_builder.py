"""Allocation and region tables with defaults for columns that a source lacks."""

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.tables import Allocations, NamedSpans, Regions, Stacks
from tb_memplugin.model.text import Strings, Text


def allocations(
    size: I64,
    *,
    id: I64 | None = None,
    requested: I64 | None = None,
    start: I64 | None = None,
    end: I64 | None = None,
    last_used: I64 | None = None,
    region: I32 | None = None,
    offset: I64 | None = None,
    role: U8 | None = None,
    stack: I32 | None = None,
    name: Text | None = None,
    shape: Text | None = None,
    dtype: Text | None = None,
    op: Text | None = None,
    op_name: Text | None = None,
) -> Allocations:
    """Build a table of n rows that share no memory, each charged for all of its bytes.

    Omitted columns are unknown. Defaults: ids are row numbers, `requested` equals `size`, and the axis is one instant.
    """
    n = len(size)
    no_text = Text(np.full(n, -1, dtype=np.int32), Strings.of([]))
    unknown = np.full(n, -1, dtype=np.int32)
    start_column = np.zeros(n, dtype=np.int64) if start is None else start
    end_column = start_column + 1 if end is None else end
    return Allocations(
        id=np.arange(n) if id is None else id,
        size=size,
        requested=size if requested is None else requested,
        charge=size,
        start=start_column,
        end=end_column,
        defined=start_column,
        last_used=np.maximum(end_column - 1, start_column) if last_used is None else last_used,
        region=unknown if region is None else region,
        offset=unknown.astype(np.int64) if offset is None else offset,
        canonical=np.arange(n, dtype=np.int32),
        role=np.full(n, Role.UNKNOWN, dtype=np.uint8) if role is None else role,
        stack=unknown if stack is None else stack,
        name=no_text if name is None else name,
        shape=no_text if shape is None else shape,
        dtype=no_text if dtype is None else dtype,
        op=no_text if op is None else op,
        op_name=no_text if op_name is None else op_name,
    )


def segments(base: I64, size: I64) -> Regions:
    """Build regions from an allocator's segments, identified by address."""
    return Regions(base, size, np.full(len(size), RegionKind.TEMPORARY, dtype=np.uint8))


def no_stacks() -> Stacks:
    """Build an empty tree of stacks."""
    none, no_text = np.empty(0, dtype=np.int32), Text.of([])
    return Stacks(none, no_text, no_text, none)


def no_spans() -> NamedSpans:
    """Build an empty table of spans."""
    empty = np.empty(0, dtype=np.int64)
    return NamedSpans(Text.of([]), np.empty(0, dtype=np.uint8), empty, empty)


def no_regions() -> Regions:
    """Build an empty table of regions."""
    empty = np.empty(0, dtype=np.int64)
    return Regions(empty, empty, np.empty(0, dtype=np.uint8))
