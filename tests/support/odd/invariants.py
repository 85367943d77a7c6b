"""The invariants of a Recording that every reader guarantees, however damaged its file is.

Analyses and views rely on these and on nothing else. In particular they may get no rows, no positions, no regions,
empty names, bytes that are not UTF-8, cyclic stacks, and rows that are live nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.dataflow import DataflowValues, Derivation, ProductKind
from tb_memplugin.model.kinds import Axis, RegionKind, Role, SpanKind
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Allocations, NamedSpans, Regions, ReportedMemory, Stacks
from tb_memplugin.model.text import Text

MAX_BYTES = 1 << 50  # of a size or a figure; readers leave out larger ones
MAX_TOTAL = 1 << 62  # of all sizes of a table, so that no sum of two of them overflows
Array = npt.NDArray[Any]


def violations(recording: Recording) -> list[str]:
    """Return a line for each invariant that does not hold."""
    return [*_violations(recording)]


def _violations(recording: Recording) -> Iterator[str]:
    length = recording.length
    if length < 0 or (recording.axis is Axis.INSTANT and length != 1):
        yield f"length {length}"
    stacks = recording.stacks
    yield from _stacks(stacks)
    yield from _regions(recording.regions, length)
    yield from _allocations(recording.allocations, recording)
    if recording.free_stack is not None:
        yield from _column("free_stack", recording.free_stack, len(recording.allocations), -1, len(stacks.parent) - 1)
    if recording.device_profile is not None:
        counts = recording.device_profile.allocations
        yield from _column("counts", counts, len(recording.allocations), 0, MAX_BYTES)
    if recording.program is not None:
        yield from _program(recording.program, recording)
    if recording.reported is not None:
        yield from _reported(recording.reported, length)
    if recording.caching_allocator is not None:
        state = recording.caching_allocator
        if state.reserved is not None:
            yield from _column("reserved", state.reserved, length, 0, MAX_TOTAL)
        if state.events is not None:
            yield from _text("events", state.events, length)
    if recording.clock is not None:
        yield from _column("clock", recording.clock, length, -MAX_TOTAL, MAX_TOTAL)
        if (np.diff(recording.clock) < 0).any():
            yield "clock falls"
    if recording.spans is not None:
        yield from _spans(recording.spans)
    if recording.program_chunks is not None:
        yield from _text("chunks.program", recording.program_chunks.program, len(recording.allocations))
        yield from _column("chunks.allocation", recording.program_chunks.allocation, len(recording.allocations), -1)


def _column(name: str, column: Array, length: int, low: int | None = None, high: int | None = None) -> Iterator[str]:
    if column.ndim != 1 or len(column) != length:
        yield f"{name} has {len(column)} entries, not {length}"
    elif len(column) and low is not None and column.min() < low:
        yield f"{name} is at least {column.min()}, below {low}"
    elif len(column) and high is not None and column.max() > high:
        yield f"{name} is at most {column.max()}, above {high}"


def _text(name: str, text: Text, length: int) -> Iterator[str]:
    yield from _column(name, text.codes, length, -1, len(text.strings) - 1)
    offsets = text.strings.offsets
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(text.strings.blob) or (np.diff(offsets) < 0).any():
        yield f"{name}: offsets of strings"


def _stacks(stacks: Stacks) -> Iterator[str]:
    count = len(stacks.parent)
    yield from _column("stacks.parent", stacks.parent, count, -1, count - 1)
    if _has_cycle(stacks.parent):
        yield "stacks have a cycle"
    yield from _text("stacks.function", stacks.function, count)
    yield from _text("stacks.file", stacks.file, count)
    yield from _column("stacks.line", stacks.line, count)


def _has_cycle(parent: Array) -> bool:
    """Follow all parents at once, twice as far in each round."""
    count = len(parent)
    above = np.r_[np.where(parent >= 0, parent, count), count].astype(np.int64)
    for _ in range(count.bit_length()):
        above = above[above]
    return bool((above != count).any())


def _regions(regions: Regions, length: int) -> Iterator[str]:
    count = len(regions)
    yield from _column("regions.index", regions.index, count)
    yield from _column("regions.size", regions.size, count, 0, MAX_BYTES)
    yield from _total("regions.size", regions.size)
    yield from _column("regions.kind", regions.kind, count, 0, sum(RegionKind))
    if (regions.start is None) != (regions.end is None):
        yield "regions have one of start and end"
    if regions.start is not None and regions.end is not None:
        yield from _lifetimes("regions", regions.start, regions.end, count, length)


def _lifetimes(name: str, start: Array, end: Array, count: int, length: int) -> Iterator[str]:
    yield from _column(f"{name}.start", start, count, -1, length)
    yield from _column(f"{name}.end", end, count, 0, length)
    if len(start) == len(end) and (start > end).any():
        yield f"{name} start after their end"


def _total(name: str, column: Array) -> Iterator[str]:
    if sum(column.tolist()) > MAX_TOTAL:
        yield f"{name} add up to too much"


def _allocations(rows: Allocations, recording: Recording) -> Iterator[str]:
    count, length = len(rows), recording.length
    for name in ("size", "requested", "charge"):
        yield from _column(name, getattr(rows, name), count, 0, MAX_BYTES)
        yield from _total(name, getattr(rows, name))
    yield from _lifetimes("rows", rows.start, rows.end, count, length)
    yield from _column("defined", rows.defined, count, -1, length)
    yield from _column("last_used", rows.last_used, count, -1, length)
    lowest = 0 if recording.kind.has_program else -1  # a program's rows all lie in a buffer allocation
    yield from _column("region", rows.region, count, lowest, len(recording.regions) - 1)
    yield from _column("offset", rows.offset, count, -1)
    yield from _column("canonical", rows.canonical, count, 0, count - 1)
    yield from _column("role", rows.role, count, 0, max(Role))
    yield from _column("stack", rows.stack, count, -1, len(recording.stacks.parent) - 1)
    yield from _column("id", rows.id, count)
    for name in ("name", "shape", "dtype", "op", "op_name"):
        yield from _text(name, getattr(rows, name), count)


def _program(program: Program, recording: Recording) -> Iterator[str]:
    length, count = recording.length, len(recording.allocations)
    for name in ("name", "op", "op_name", "computation"):
        yield from _text(f"program.{name}", getattr(program, name), length)
    yield from _column("program.stack", program.stack, length, -1, len(recording.stacks.parent) - 1)
    if (program.value is None) != (program.values is None):
        yield "program has one of value and values"
    if program.value is None or program.values is None:
        return
    values = program.values()
    yield from _column("program.value", program.value, count, -1, len(values) - 1)
    yield from _values(values, length)
    shardings = program.shardings
    if shardings is not None:
        yield from _column("shardings.copies", shardings.copies, len(shardings.copies), 0)
        yield from _column("shardings.code", shardings.code, len(shardings.copies), -1, len(shardings.named) - 1)


def _values(values: DataflowValues, length: int) -> Iterator[str]:
    count = len(values)
    yield from _column("shape", values.shape, count)
    yield from _column("elements", values.elements, count, 0)
    yield from _column("floating", values.floating, count, 0, 1)
    yield from _column("producer", values.producer, count, -1, length - 1)
    yield from _column("use_begin", values.use_begin, count + 1, 0, len(values.use))
    if values.use_begin[0] != 0 or values.use_begin[-1] != len(values.use) or (np.diff(values.use_begin) < 0).any():
        yield "use_begin does not cover use"
    yield from _column("use", values.use, len(values.use), 0, length - 1)
    for name in ("loop_carried", "bundled"):
        source, target = getattr(values, name)
        yield from _column(f"{name}[0]", source, len(target), 0, count - 1)
        yield from _column(f"{name}[1]", target, len(target), 0, count - 1)
    yield from _column("argument", values.argument, count, -1)
    yield from _column("result", values.result, len(values.result), -1, count - 1)
    yield from _column("donor", values.donor, len(values.result), -1)
    yield from _text("values.op_name", values.op_name, count)
    yield from _column("transposed", values.transposed, len(values.transposed), 0, count - 1)
    derivations, products = values.derivations, values.products
    pairs = len(derivations.source)
    yield from _column("derivations.source", derivations.source, pairs, 0, count - 1)
    yield from _column("derivations.target", derivations.target, pairs, 0, count - 1)
    yield from _column("derivations.steps", derivations.steps, pairs, 0)
    yield from _column("derivations.kind", derivations.kind, pairs, 0, max(Derivation))
    yield from _column("products.position", products.position, len(products), 0, length - 1)
    yield from _column("products.kind", products.kind, len(products), 0, max(ProductKind))
    sides = len(products.product)
    yield from _column("products.product", products.product, sides, 0, len(products) - 1)
    yield from _column("products.value", products.value, sides, 0, count - 1)
    yield from _column("products.side", products.side, sides, 0, 1)


def _reported(reported: ReportedMemory, length: int) -> Iterator[str]:
    for name in ("in_use", "reserved", "free", "lifetime_peak"):
        yield from _column(f"reported.{name}", getattr(reported, name), length, 0, MAX_TOTAL)
    yield from _column("reported.fragmentation", reported.fragmentation, length)


def _spans(spans: NamedSpans) -> Iterator[str]:
    count = len(spans)
    yield from _text("spans.name", spans.name, count)
    yield from _column("spans.kind", spans.kind, count, 0, max(SpanKind))
    yield from _column("spans.start_ns", spans.start_ns, count)
    yield from _column("spans.end_ns", spans.end_ns, count)
    if (np.diff(spans.start_ns) < 0).any():
        yield "spans are not sorted"
    if len(spans.end_ns) == count and (spans.end_ns < spans.start_ns).any():
        yield "spans end before they start"
