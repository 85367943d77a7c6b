"""Lifetimes of logical buffers, from the heap simulator's traces or reconstructed where those lack a buffer.

Memory of parameters, outputs, constants and thread-locals is reserved for the whole program. The rest, temporary
memory, is reused over time. The compiler's traces record how, for the buffers that they contain.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8, Mask, connected_components, marked, take_or_missing
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.native.hlo.liveness import hand_over, replay
from tb_memplugin.native.hlo.shared_bytes import charge_once
from tb_memplugin.readers.common.rows import IdIndex
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.module.tables import ALLOCATIONS, TRACES, HloModule


@dataclass
class Placement:
    """One row per (buffer allocation, logical buffer in it), with columns as in model.tables.Allocations."""

    buffer: I32  # row of the logical buffer; -1 missing in the file
    region: I32  # row of the buffer allocation
    offset: I64
    size: I64
    defined: I64
    last_used: I64
    start: I64
    end: I64
    charge: I64
    canonical: I32
    region_kind: U8  # per buffer allocation
    rebuilt: Mask  # rows of temporary memory that no trace contains
    inconsistent_events: int = 0
    conflicts: int = 0  # rebuilt rows overwritten before their last use
    trace_peak: int = 0  # maximum of the running sum over the traces' events, in bytes


class LiveRanges(NamedTuple):
    """The first and the last position of logical buffers, which are named by their ids.

    `is_known=False`: nothing shows when temporary memory is used, so that it is reserved for the whole program.
    """

    buffer: I64
    first: I64
    last: I64
    is_known: bool


def region_kinds(module: HloModule) -> U8:
    """Return the RegionKind flags of each buffer allocation."""
    table = module.allocations
    kinds = np.zeros(len(table["index"]), dtype=np.uint8)
    for column, kind in (
        ("is_entry_computation_parameter", RegionKind.PARAMETER),
        ("maybe_live_out", RegionKind.OUTPUT),
        ("is_constant", RegionKind.CONSTANT),
        ("is_thread_local", RegionKind.THREAD_LOCAL),
    ):
        kinds[table[column] != 0] |= int(kind)
    return kinds


def place_buffers(
    module: HloModule, dataflow: DataflowAnalysis, *, use_traces: bool = True, ranges: LiveRanges | None = None
) -> Placement:
    """Place all buffers on the schedule. `use_traces=False` reconstructs all lifetimes, to test the reconstruction.

    `ranges`: live ranges that the compiler reports, in place of traces.
    """
    assigned = module.tables[f"{ALLOCATIONS}.assigned"]
    length = dataflow.schedule.length
    buffer = IdIndex(module.buffers["id"]).rows(assigned["logical_buffer_id"])
    region = assigned["parent"].astype(np.int32)
    reported = np.zeros(len(module.buffers["id"]) + 1, dtype=bool)  # the last: no buffer
    if ranges is not None:
        reported[_apply_ranges(module, dataflow, ranges)] = True
        reported[-1] = False
    defined, last_used = (np.append(column, -1)[buffer] for column in (dataflow.defined, dataflow.last_used))
    # A buffer defined outside the schedule, for example in a fusion, may be live throughout.
    last_used = np.where(defined < 0, length, last_used)
    n = len(buffer)
    rows = Placement(
        buffer=buffer, region=region, offset=assigned["offset"], size=assigned["size"],
        defined=defined, last_used=last_used, start=defined.copy(), end=np.minimum(last_used + 1, length),
        charge=np.zeros(n, np.int64), canonical=np.arange(n, dtype=np.int32), region_kind=region_kinds(module),
        rebuilt=np.zeros(n, dtype=bool),
    )  # fmt: skip
    kind = rows.region_kind[region]
    temporary = kind == RegionKind.TEMPORARY
    traced = _apply_traces(module, rows, temporary, length) if use_traces else np.zeros(n, dtype=bool)
    if ranges is not None:  # which have tuples' pointer tables, unlike traces of memory with other buffers
        ranged = temporary & reported[buffer]
        arrays = ranged & ~_is_tuple(module, buffer)
        traced = arrays | (ranged & ~np.isin(region, region[arrays]))
        rows.charge[traced] = rows.size[traced]
    _mark_arguments_and_constants(module, rows, kind, length)
    _reconstruct(dataflow, rows, np.flatnonzero(~traced & ((kind & RegionKind.THREAD_LOCAL) == 0)))
    # Traces omit the pointer tables of tuples, a few bytes each. They count 0 here too, to match the traces' sums.
    tuple_tables = ~traced & temporary & _is_tuple(module, buffer) & np.isin(region, region[traced])
    rows.charge[tuple_tables] = 0
    _charge_once(module, rows, np.flatnonzero(temporary & (rows.charge > 0)))
    in_traced_memory = marked(len(traced), rows.canonical[traced])
    rows.rebuilt = temporary & ~in_traced_memory[rows.canonical] & ~tuple_tables & (rows.size > 0)
    if ranges is not None and not ranges.is_known:
        temporary[:] = rows.rebuilt[:] = False
        rows.conflicts = 0
    _reserve_for_program(module, rows, np.flatnonzero(~temporary), length)
    return rows


def _apply_ranges(module: HloModule, dataflow: DataflowAnalysis, ranges: LiveRanges) -> I32:
    """Set definitions and last uses that the compiler reports; return the rows of their logical buffers."""
    found = IdIndex(module.buffers["id"]).rows(ranges.buffer)
    length, known = dataflow.schedule.length, found >= 0
    rows = found[known]
    dataflow.last_used[rows] = np.minimum(ranges.last, length)[known]  # this computes both, from the schedule
    dataflow.defined[rows] = np.minimum(ranges.first, length - 1)[known]
    return rows


def _apply_traces(module: HloModule, rows: Placement, temporary: Mask, length: int) -> Mask:
    """Set the lifetimes that traces contain; return a mask of those rows."""
    events, sharing = (module.tables.pop(f"{TRACES}.events{path}") for path in ("", ".share_with_canonical_id"))
    if not len(rows.buffer) or not len(module.buffers["id"]) or not len(events["kind"]):
        return np.zeros(len(rows.buffer), dtype=bool)
    by_buffer = IdIndex(np.where(rows.buffer >= 0, module.buffers["id"][rows.buffer], -1))
    shared = np.full(len(events["kind"]), by_buffer.rows(np.zeros(1, dtype=np.int64))[0])  # an absent id is 0
    shared[sharing["parent"]] = by_buffer.rows(sharing["value"])
    start, end, own_end, charge, canonical, traced, peak, inconsistent = replay(
        events["parent"],
        np.minimum(events["kind"], 3).astype(np.int8),
        by_buffer.rows(events.pop("buffer_id")),
        shared,
        rows.size, rows.defined, rows.last_used, length,
    )  # fmt: skip
    placed: Mask = temporary & (traced != 0)
    rows.start[placed], rows.end[placed] = start[placed], end[placed]
    rows.defined[placed], rows.last_used[placed] = start[placed], own_end[placed] - 1
    rows.charge[placed], rows.canonical[placed] = charge[placed], canonical[placed]
    rows.trace_peak, rows.inconsistent_events = peak, inconsistent
    return placed


def _reconstruct(dataflow: DataflowAnalysis, rows: Placement, which: I64) -> None:
    """Set lifetimes from definition to last use. The input, carry and result of a loop share one memory."""
    order = which[np.lexsort((rows.start[which], rows.region[which]))]
    index = np.full(len(dataflow.defined) + 1, -1, dtype=np.int64)  # logical buffer -> index in `order`
    index[rows.buffer[order]] = np.arange(len(order))
    index[-1] = -1
    left, right = (index[side] for side in dataflow.loop_carried)
    both_present = (left >= 0) & (right >= 0)
    left, right = left[both_present], right[both_present]
    same_address = (rows.region[order[left]] == rows.region[order[right]]) & (
        rows.offset[order[left]] == rows.offset[order[right]]
    )
    canonical = connected_components(len(order), left[same_address], right[same_address])
    end = rows.end[order]
    rows.conflicts = hand_over(
        rows.region[order].astype(np.int64), rows.offset[order], rows.size[order],
        np.maximum(rows.start[order], 0), end, rows.last_used[order], canonical,
    )  # fmt: skip
    rows.end[order] = end
    rows.charge[order] = rows.size[order]
    rows.canonical[order] = order[canonical]


def _charge_once(module: HloModule, rows: Placement, which: I64) -> None:
    """Charge each byte of temporary memory to one live row. Rows that share bytes get the same canonical row.

    On TPU, a tensor lies on the slices that it was prefetched in, results are written over operands, and loops have
    parameters of their own in the memory of their operands. Traces contain some of these rows as allocations.
    """
    available = np.maximum(module.allocations["size"][rows.region[which]] - rows.offset[which], 0)
    rows.charge[which] = np.minimum(rows.charge[which], available)
    order = which[np.lexsort((-rows.end[which], rows.start[which], rows.region[which]))]
    end, last_used, charge = rows.end[order], rows.last_used[order], rows.charge[order]
    left, right = charge_once(
        rows.region[order].astype(np.int64), rows.offset[order], rows.start[order], end, last_used, charge
    )
    rows.end[order], rows.last_used[order], rows.charge[order] = end, last_used, charge
    if len(left):
        own = np.arange(len(rows.canonical))
        left, right = np.r_[own, order[left]], np.r_[rows.canonical.astype(np.int64), order[right]]
        rows.canonical = connected_components(len(own), left, right)


def _mark_arguments_and_constants(module: HloModule, rows: Placement, kind: U8, length: int) -> None:
    """Make the program's arguments and constants live before it starts."""
    rows.last_used[(kind & RegionKind.CONSTANT) != 0] = length
    instruction = take_or_missing(module.buffer_instruction, rows.buffer)
    is_parameter = module.is_opcode({"parameter"})[instruction] & (instruction >= 0)
    in_entry = module.instructions["parent"][instruction] == module.entry
    argument = is_parameter & in_entry & ((kind & RegionKind.PARAMETER) != 0)
    rows.defined[argument] = rows.start[argument] = -1


def _is_tuple(module: HloModule, buffer: I32) -> Mask:
    table, _ = module.instruction_shapes
    node = take_or_missing(module.buffer_node, buffer)
    return (node >= 0) & (table.child_count[node] > 0)


def _reserve_for_program(module: HloModule, rows: Placement, which: I64, length: int) -> None:
    """Reserve non-temporary memory for the whole program; the largest buffer of each allocation carries its charge."""
    rows.charge[which] = 0
    largest = which[np.lexsort((which, -rows.size[which], rows.region[which]))]
    first_of_region = np.diff(rows.region[largest], prepend=-1) != 0
    largest_rows = largest[first_of_region & (rows.size[largest] > 0)]
    # Thread-local memory is on the threads' stacks, outside the program's memory, so it has no charge.
    charged = (rows.region_kind[rows.region[largest_rows]] & RegionKind.THREAD_LOCAL) == 0
    rows.charge[largest_rows] = np.where(charged, module.allocations["size"][rows.region[largest_rows]], 0)
    rows.start[largest_rows], rows.end[largest_rows] = -1, length
