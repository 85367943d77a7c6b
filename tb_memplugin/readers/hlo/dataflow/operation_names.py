"""Words in the names of a program's operations, those inside fusions included."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS


def positions_of_name(dataflow: DataflowAnalysis, word: bytes) -> I32:
    """Return the positions of instructions and fusions with the word in an operation's name.

    The file's bytes are searched, which is faster than reading the names inside all fusions.
    """
    module, schedule = dataflow.module, dataflow.schedule
    found = np.array([match.start() for match in re.finditer(re.escape(word), module.data)], dtype=np.int64)
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


def _count(found: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    counts: np.ndarray = np.searchsorted(found, end) - np.searchsorted(found, start)
    return counts
