"""Recordings with fewer rows, positions, regions or values, so that all columns still belong together."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.dataflow import DataflowValues, Derivations, Products
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import CachingAllocatorState, DeviceProfileCounts, ProgramChunks
from tb_memplugin.model.text import Strings, Text

Rows = npt.NDArray[np.int64]
Columns = TypeVar("Columns")


def taken(table: Columns, rows: Rows) -> Columns:
    """Return a table with these rows of each column."""
    columns = {f.name: getattr(table, f.name) for f in fields(table)}  # type: ignore[arg-type]
    return replace(  # type: ignore[type-var]
        table, **{name: _taken(column, rows) for name, column in columns.items() if column is not None}
    )


def _taken(column: Any, rows: Rows) -> Any:
    return column.take(rows) if isinstance(column, Text) else column[rows]


def no_text(length: int) -> Text:
    return Text(np.full(length, -1, dtype=np.int32), Strings.of([]))


def plain(recording: Recording) -> Recording:
    """Return a recording without lazy parts."""
    names = [f.name for f in fields(Recording)]
    return Recording(**{name: getattr(recording, name) for name in names})


def with_rows(recording: Recording, rows: Rows) -> Recording:
    """Return the recording with these rows; a row whose memory another shared, which is gone, has its own."""
    number = np.full(len(recording.allocations), -1)
    number[rows] = np.arange(len(rows))
    table = taken(recording.allocations, rows)
    canonical = number[table.canonical]
    shared = np.where(canonical >= 0, canonical, np.arange(len(rows))).astype(np.int32)
    program, counts, chunks = recording.program, recording.device_profile, recording.program_chunks
    if program is not None and program.value is not None:
        program = replace(program, value=program.value[rows])
    return replace(
        recording,
        allocations=replace(table, canonical=shared),
        program=program,
        free_stack=None if recording.free_stack is None else recording.free_stack[rows],
        device_profile=None if counts is None else DeviceProfileCounts(counts.allocations[rows]),
        program_chunks=None if chunks is None else ProgramChunks(chunks.program.take(rows), chunks.allocation[rows]),
    )


def with_length(recording: Recording, length: int) -> Recording:
    """Return the first `length` positions of a recording, with everything after them clipped as readers do."""
    if recording.axis is Axis.INSTANT or length >= recording.length:
        return recording
    rows, regions, program = recording.allocations, recording.regions, recording.program
    lifetimes = ("start", "end", "defined", "last_used")
    first = np.arange(length)
    state = recording.caching_allocator
    return replace(
        recording,
        length=length,
        allocations=replace(rows, **{name: np.minimum(getattr(rows, name), length) for name in lifetimes}),
        regions=regions
        if regions.start is None or regions.end is None
        else replace(regions, start=np.minimum(regions.start, length), end=np.minimum(regions.end, length)),
        clock=None if recording.clock is None else recording.clock[:length],
        reported=None if recording.reported is None else taken(recording.reported, first),
        caching_allocator=None
        if state is None
        else CachingAllocatorState(
            None if state.reserved is None else state.reserved[:length],
            None if state.events is None else state.events.take(first),
        ),
        program=None if program is None else _with_positions(program, length),
    )


def _with_positions(program: Program, length: int) -> Program:
    first = np.arange(length)
    texts = {name: getattr(program, name).take(first) for name in ("name", "op", "op_name", "computation")}
    values = program.values
    return replace(
        program,
        **texts,
        stack=program.stack[:length],
        values=None if values is None else Lazy(lambda: _values_within(values(), length)),
    )


def _values_within(values: DataflowValues, length: int) -> DataflowValues:
    kept = values.use < length
    used = np.r_[0, np.cumsum(kept)][values.use_begin]
    of_program = np.flatnonzero(values.products.position < length)
    number = np.full(len(values.products), -1)
    number[of_program] = np.arange(len(of_program))
    sides = number[values.products.product] >= 0
    products = values.products
    return replace(
        values,
        producer=np.where(values.producer < length, values.producer, -1).astype(np.int32),
        use=values.use[kept],
        use_begin=used.astype(np.int64),
        products=Products(
            products.position[of_program],
            products.kind[of_program],
            number[products.product[sides]].astype(np.int32),
            products.value[sides],
            products.side[sides],
        ),
    )


def without_regions(recording: Recording) -> Recording:
    """Return a recording without regions. A program's rows lie in regions, so it has no rows either."""
    if recording.kind.has_program:
        recording = with_rows(recording, np.arange(0))
    table, nowhere = recording.allocations, np.full(len(recording.allocations), -1, dtype=np.int32)
    return replace(
        recording,
        regions=taken(recording.regions, np.arange(0)),
        allocations=replace(table, region=nowhere),
    )


def without_stacks(recording: Recording) -> Recording:
    none = np.full(len(recording.allocations), -1, dtype=np.int32)
    program = recording.program
    return replace(
        recording,
        stacks=taken(recording.stacks, np.arange(0)),
        allocations=replace(recording.allocations, stack=none),
        free_stack=None if recording.free_stack is None else none,
        program=None if program is None else replace(program, stack=np.full(recording.length, -1, dtype=np.int32)),
    )


def without_values(recording: Recording) -> Recording:
    """Return a program of which no value is known, though the table is there."""
    program = recording.program
    if program is None or program.values is None:
        return recording
    i32, u8 = np.zeros(0, np.int32), np.zeros(0, np.uint8)
    nothing = DataflowValues(
        i32, np.zeros(0, np.int64), u8, i32, np.zeros(1, np.int64), i32, (i32, i32), (i32, i32), i32, i32, i32,
        Derivations(i32, i32, i32, u8), Products(i32, u8, i32, i32, u8), no_text(0), i32,
    )  # fmt: skip
    value = np.full(len(recording.allocations), -1, dtype=np.int32)
    return replace(recording, program=replace(program, value=value, values=Lazy(lambda: nothing)))
