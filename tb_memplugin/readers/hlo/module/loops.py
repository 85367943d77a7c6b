"""The number of iterations of a program's loops."""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.readers.hlo.module.columns import ModuleTexts, sparse_spans
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS, CONFIGS, HloModule

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
