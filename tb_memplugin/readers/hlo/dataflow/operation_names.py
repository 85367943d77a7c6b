"""Words in the names of a program's operations, those inside fusions included."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.native.graph.walks import grouped, reach
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.fused_results import FusedResults
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS


def positions_of_name(dataflow: DataflowAnalysis, word: bytes) -> I32:
    """Return the positions of instructions and fusions with the word in an operation's name.

    The file's bytes are searched, which is faster than reading the names inside all fusions.
    """
    module, schedule = dataflow.module, dataflow.schedule
    found = occurrences(dataflow, word)
    names = module.instructions["metadata.op_name"]
    start = names.start[schedule.order]
    named = _count(found, start, start + names.length[schedule.order]) > 0
    fusions = np.flatnonzero(dataflow.nodes.is_opcode({"fusion"}))
    called = module.callees.nth(schedule.order[fusions], 0)
    fusions, called = fusions[called >= 0], called[called >= 0]
    bodies = module.tables[COMPUTATIONS]["span"].take(called)
    named[fusions] |= _count(found, bodies.start, bodies.start + bodies.length) > 0
    positions: I32 = np.flatnonzero(named).astype(np.int32)
    return positions


def values_of_name(dataflow: DataflowAnalysis, producer: I32, fused: FusedResults | None, word: bytes) -> I32:
    """Return the values that such an instruction or fusion computes.

    `producer` is the position of each value. Of a fusion with several results, those that depend on the operation.
    """
    named = np.zeros(dataflow.schedule.length + 1, dtype=bool)
    named[positions_of_name(dataflow, word)] = True
    if fused is None:
        return np.flatnonzero(named[producer]).astype(np.int32)
    named[fused.position] = False
    body = fused.body
    spans = body.op_name
    found = occurrences(dataflow, word)
    inside = np.flatnonzero(_count(found, spans.start, spans.start + spans.length) > 0).astype(np.int32)
    known = np.flatnonzero(body.operand >= 0)
    user = np.repeat(np.arange(len(body.count), dtype=np.int32), body.count)[known]
    begin, order = grouped(body.operand[known].astype(np.int32), len(body.count))
    downstream = reach(begin, user[order], inside).view(np.bool_)
    results = fused.value[downstream[fused.root] & (fused.value >= 0)]
    return np.r_[np.flatnonzero(named[producer]), results].astype(np.int32)


def occurrences(dataflow: DataflowAnalysis, word: bytes) -> I64:
    """Return the places of a word in the file's bytes, rising."""
    return np.array([match.start() for match in re.finditer(re.escape(word), dataflow.module.data)], dtype=np.int64)


def _count(found: I64, start: I64, end: I64) -> I64:
    counts: I64 = np.searchsorted(found, end) - np.searchsorted(found, start)
    return counts
