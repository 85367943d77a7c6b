"""Values by the names of the operations that compute them, inside fusions too."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.native.graph.walks import grouped, reach
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.fused_results import FusedResults


def values_of_name(dataflow: DataflowAnalysis, producer: I32, fused: FusedResults | None, word: bytes) -> I32:
    """Return the values that an operation with the word in its name computes, alone or inside a fusion.

    `producer` is the position of each value. Of a fusion with several results, `fused`, those count that depend on the
    operation.
    """
    named = np.zeros(dataflow.schedule.length + 1, dtype=bool)
    named[:-1] = dataflow.module.scope.all().contains(word)[dataflow.schedule.order]
    fusions = dataflow.fusions()
    named[fusions.positions_with(fusions.op_name.contains(word))] = True
    if fused is None:
        return np.flatnonzero(named[producer]).astype(np.int32)
    named[fused.position] = False
    body = fused.body
    inside = np.flatnonzero(dataflow.module.interned_texts(body.op_name).contains(word)).astype(np.int32)
    known = np.flatnonzero(body.operand >= 0)
    user = np.repeat(np.arange(len(body.count), dtype=np.int32), body.count)[known]
    begin, order = grouped(body.operand[known].astype(np.int32), len(body.count))
    downstream = reach(begin, user[order], inside).view(np.bool_)
    results = fused.value[downstream[fused.root] & (fused.value >= 0)]
    values: I32 = np.r_[np.flatnonzero(named[producer]), results].astype(np.int32)
    return values
