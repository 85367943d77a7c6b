"""When each logical buffer is held: by the heap simulator's traces, or rebuilt where there is none.

Memory of parameters, outputs, constants and thread-locals is held for the whole program. The rest, temporary
memory, is shared out over time; the compiler's own traces say how, for the buffers they name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.native.hlo.liveness import hand_over, replay
from tb_memplugin.readers.common.id_index import IdIndex
from tb_memplugin.readers.hlo.lifetimes.uses import Dataflow
from tb_memplugin.readers.hlo.module import ALLOCATIONS, Module

Mask = npt.NDArray[np.bool_]


@dataclass
class Placement:
    """One row per (buffer allocation, logical buffer in it); columns as in recording.Allocations."""

    buffer: I32  # row of the logical buffer, -1 where the file lacks it
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
    rebuilt: Mask  # rows of temporary memory whose lifetimes no trace gave
    odd_events: int = 0
    conflicts: int = 0  # rebuilt rows whose bytes another took while they were still to be read
    trace_peak: int = 0  # of the running sum over the traces' events


def region_kinds(module: Module) -> U8:
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


def place(module: Module, dataflow: Dataflow, *, use_traces: bool = True) -> Placement:
    """All buffers of all allocations on the schedule. `use_traces=False` rebuilds everything, to test the rebuild."""
    assigned = module.tables[f"{ALLOCATIONS}.assigned"]
    length = dataflow.schedule.length
    buffer = IdIndex(module.buffers["id"]).rows(assigned["logical_buffer_id"])
    region = assigned["parent"].astype(np.int32)
    known = buffer >= 0
    defined = np.where(known, dataflow.defined[buffer] if len(dataflow.defined) else -1, -1)
    last_used = np.where(known, dataflow.last_used[buffer] if len(dataflow.defined) else -1, -1)
    # An instruction outside the schedule (in a fusion, say) tells nothing: its buffer may live all along.
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
    traced = _replay(module, rows, temporary, length) if use_traces else np.zeros(n, dtype=bool)
    _mark_given(module, rows, kind, length)
    _rebuild(dataflow, rows, np.flatnonzero(~traced & ((kind & RegionKind.THREAD_LOCAL) == 0)))
    # A trace leaves out the pointer tables of tuples, a few bytes each; so do we, to count what it counts.
    tables = ~traced & temporary & _is_tuple(module, buffer) & np.isin(region, region[traced])
    rows.charge[tables] = 0
    rows.rebuilt = temporary & ~traced & ~tables & (rows.size > 0)
    _hold(module, rows, np.flatnonzero(~temporary), length)
    return rows


def _replay(module: Module, rows: Placement, temporary: Mask, length: int) -> Mask:
    """Place what the traces name; returns which temporary rows that are."""
    events = module.events
    if not len(rows.buffer) or not len(module.buffers["id"]) or not len(events["kind"]):
        return np.zeros(len(rows.buffer), dtype=bool)
    by_buffer = IdIndex(np.where(rows.buffer >= 0, module.buffers["id"][rows.buffer], -1))
    start, end, own, charge, canonical, traced, peak, odd = replay(
        events["parent"].astype(np.int32),
        np.minimum(events["kind"], 3).astype(np.int8),
        by_buffer.rows(events["buffer_id"]),
        by_buffer.rows(events["share_with_canonical_id"]),
        rows.size, rows.defined, rows.last_used, length,
    )  # fmt: skip
    placed: Mask = temporary & (traced != 0)
    rows.start[placed], rows.end[placed] = start[placed], end[placed]
    rows.defined[placed], rows.last_used[placed] = start[placed], own[placed] - 1
    rows.charge[placed], rows.canonical[placed] = charge[placed], canonical[placed]
    rows.trace_peak, rows.odd_events = peak, odd
    return placed


def _rebuild(dataflow: Dataflow, rows: Placement, which: I64) -> None:
    """Lifetimes from definition to last use; what goes into a loop, its carry and its result are one memory."""
    order = which[np.lexsort((rows.start[which], rows.region[which]))]
    at = np.full(len(dataflow.defined) + 1, -1, dtype=np.int64)  # logical buffer -> place in `order`
    at[rows.buffer[order]] = np.arange(len(order))
    at[-1] = -1
    left, right = (at[side] for side in dataflow.carries)
    together = (left >= 0) & (right >= 0)
    left, right = left[together], right[together]
    same = (rows.region[order[left]] == rows.region[order[right]]) & (
        rows.offset[order[left]] == rows.offset[order[right]]
    )
    canonical = _connected(len(order), left[same], right[same])
    end = rows.end[order]
    rows.conflicts = hand_over(
        rows.region[order].astype(np.int64), rows.offset[order], rows.size[order],
        np.maximum(rows.start[order], 0), end, rows.last_used[order], canonical,
    )  # fmt: skip
    rows.end[order] = end
    rows.charge[order] = rows.size[order]
    rows.canonical[order] = order[canonical]


def _mark_given(module: Module, rows: Placement, kind: U8, length: int) -> None:
    """What is there before the program starts: its arguments and constants."""
    rows.last_used[(kind & RegionKind.CONSTANT) != 0] = length
    buffer = rows.buffer
    instruction = np.where(buffer >= 0, module.buffer_instruction[buffer], -1) if len(module.buffers["id"]) else buffer
    is_parameter = module.is_opcode({"parameter"})[instruction] & (instruction >= 0)
    in_entry = module.instructions["parent"][instruction] == module.entry
    argument = is_parameter & in_entry & ((kind & RegionKind.PARAMETER) != 0)
    rows.defined[argument] = rows.start[argument] = -1


def _is_tuple(module: Module, buffer: I32) -> Mask:
    table, _ = module.shape_of
    node = np.where(buffer >= 0, module.buffer_node[buffer], -1) if len(module.buffer_node) else buffer
    return (node >= 0) & (table.child_count[node] > 0)


def _hold(module: Module, rows: Placement, which: I64, length: int) -> None:
    """Memory held for the whole program: the largest buffer of each allocation carries its charge."""
    rows.charge[which] = 0
    largest = which[np.lexsort((which, -rows.size[which], rows.region[which]))]
    first = np.diff(rows.region[largest], prepend=-1) != 0
    holders = largest[first & (rows.size[largest] > 0)]
    # Thread-local memory is on the threads' stacks: it is no part of the program's memory, and charged to nobody.
    own = (rows.region_kind[rows.region[holders]] & RegionKind.THREAD_LOCAL) == 0
    rows.charge[holders] = np.where(own, module.allocations["size"][rows.region[holders]], 0)
    rows.start[holders], rows.end[holders] = -1, length


def _connected(n: int, left: I64, right: I64) -> I32:
    """Per item the smallest item it is connected to, through any chain of pairs."""
    label = np.arange(n, dtype=np.int32)
    while True:
        low = np.minimum(label[left], label[right])
        before = label.copy()
        np.minimum.at(label, left, low)
        np.minimum.at(label, right, low)
        label = label[label]
        if np.array_equal(label, before):
            return label
