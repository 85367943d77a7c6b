"""The flattened schedule, the axis of all buffers of a program, and the number of iterations of its loops."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.readers.hlo.module.columns import Lists, ModuleTexts, sparse_spans
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS, CONFIGS, HloModule

POSITION_BYTES = 100  # of the columns with a row per position
CALLING_OPCODES = {"call", "conditional", "async-start", "while"}


@dataclass(frozen=True)
class Schedule:
    """Instructions in the order in which the program runs them."""

    order: I64  # per position: the instruction's row
    position: I32  # per instruction: its position; -1 inside fusions and reducers, which have no schedule
    last: I64  # per computation: the position of its last instruction; -1 where it is never called
    from_file: bool  # False: the file has no schedule, and the order of definition is used

    @property
    def length(self) -> int:
        return len(self.order)


def flatten_schedule(module: HloModule) -> Schedule:
    """Inline each computation once, at its first call: a while's condition, then its body, then the while itself.

    XLA's heap simulator visits instructions in this order, so the events of its traces can be placed on it.
    """
    sequences, from_file = _sequences(module)
    calls_scheduled = module.is_opcode(CALLING_OPCODES)
    is_while = module.is_opcode({"while"})
    order: list[I64] = []
    length = 0
    last = np.full(len(module.computations["id"]), -1, dtype=np.int64)
    seen = {module.entry} & sequences.keys()

    def steps(computation: int) -> Iterator[tuple[int, I64]]:
        """Yield (computation to inline first, or -1; rows that follow it)."""
        rows = sequences[computation]
        done = 0
        for at in np.flatnonzero(calls_scheduled[rows]).tolist():
            yield -1, rows[done:at]
            called = module.callees.values[module.callees.begin[rows[at]] : module.callees.begin[rows[at] + 1]]
            # A while's callees are its body, then its condition.
            for callee in called[::-1] if is_while[rows[at]] else called:
                yield int(callee), rows[:0]
            done = at
        yield -1, rows[done:]

    # An explicit stack, since a hostile file may nest calls deeper than Python's recursion limit.
    stack = [(entry, steps(entry)) for entry in seen]
    while stack:
        computation, todo = stack[-1]
        for callee, rows in todo:
            if len(rows):
                order.append(rows)
                length += len(rows)
            if callee in sequences and callee not in seen:
                seen.add(callee)
                stack.append((callee, steps(callee)))
                break
        else:
            last[computation] = length - 1
            stack.pop()

    module.budget.charge(POSITION_BYTES * length)
    flat = np.concatenate(order) if order else np.empty(0, dtype=np.int64)
    position = np.full(len(module.instructions["id"]), -1, dtype=np.int32)
    position[flat[::-1]] = np.arange(length - 1, -1, -1)  # an instruction listed twice keeps its first position
    return Schedule(flat, position, last, from_file)


def _sequences(module: HloModule) -> tuple[dict[int, I64], bool]:
    """Return the instruction rows of each computation's row, and whether the file has a schedule."""
    table = module.tables["hlo_module.schedule.sequences"]
    if len(table["key"]):
        ids = Lists.of(module.tables.pop("hlo_module.schedule.sequences.value.instruction_ids"), len(table["key"]))
        rows = module.instruction_index.rows(ids.values)
        computation = module.computation_index.rows(table["key"])
        pieces = [rows[a:b] for a, b in zip(ids.begin[:-1].tolist(), ids.begin[1:].tolist(), strict=True)]
        return {
            int(c): piece[piece >= 0].astype(np.int64) for c, piece in zip(computation, pieces, strict=True) if c >= 0
        }, True
    parent = module.instructions["parent"]
    bounds = np.searchsorted(parent, np.arange(len(module.computations["id"]) + 1)).tolist()
    return {c: np.arange(bounds[c], bounds[c + 1]) for c in range(len(bounds) - 1)}, False


TRIPS = re.compile(rb'"known_trip_count":\{"n":"(\d{1,12})"\}')
CONDITION = {b"parameter", b"get-tuple-element", b"constant", b"compare", b"copy", b"bitcast"}
MAX_CONDITION = 1 << 16  # bytes; JAX's scans have less than 1,000


def loop_spans(module: HloModule, callers: I64) -> tuple[Spans, Spans]:
    """Return where the file has the compiler's notes on these callers, and the conditions of those that are loops."""
    condition = np.where(module.is_opcode({"while"})[callers], module.callees.nth(callers, 1), -1)
    spans = module.tables[COMPUTATIONS]["span"].take(np.maximum(condition, 0))
    return sparse_spans(module.tables[CONFIGS], callers), Spans(spans.start, np.where(condition < 0, 0, spans.length))


def iterations(texts: ModuleTexts, notes: Spans, conditions: Spans) -> list[int]:
    """Return how often each caller runs its callees; 1 for loops with an unknown number, and for other callers."""
    conditions = Spans(conditions.start, np.where(conditions.length > MAX_CONDITION, 0, conditions.length))
    found = list[int]()
    for note, condition in zip(texts.bytes_of(notes), texts.bytes_of(conditions), strict=True):
        known = TRIPS.search(note)
        found.append(max(int(known[1]) if known else _bound(condition), 1))
    return found


def _bound(condition: bytes) -> int:
    """Return the constant that a loop's counter is less than, as in JAX's scans; 1 for other conditions."""
    if not condition:
        return 1
    from google.protobuf.message import DecodeError  # a summary of a program needs no protobuf

    from tb_memplugin.protos.hlo_pb2 import CountedComputationProto

    try:
        body = {one.id: one for one in CountedComputationProto.FromString(condition).instructions}
    except DecodeError:  # a damaged file
        return 1
    compared = [one for one in body.values() if one.comparison_direction == b"LT"]
    if len(compared) != 1 or not {one.opcode for one in body.values()} <= CONDITION:
        return 1
    bounds = [body[number].literal for number in compared[0].operand_ids[1:] if number in body]
    return next((value for found in bounds for value in (*found.s32s, *found.s64s, *found.u32s)), 1)


def named_loops(module: HloModule) -> Lazy[dict[str, int]]:
    """Return the number of iterations of each loop that has a name of JAX's, by that name; 1 where it is unknown."""
    rows = np.flatnonzero(module.is_opcode({"while"}))
    return Lazy(partial(_named, module.texts, rows, *loop_spans(module, rows)))


def _named(texts: ModuleTexts, rows: I64, notes: Spans, conditions: Spans) -> dict[str, int]:
    names, trips = texts.op_name.of(rows), iterations(texts, notes, conditions)
    return {name: count for name, count in zip(names.tolist(), trips, strict=True) if name}
