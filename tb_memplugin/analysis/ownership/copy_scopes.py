"""Model paths of copies, which are those of the copied values."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

# Operations that move values without computing new ones.
MOVES = {"bitcast", "bitcast-convert", "convert", "copy", "copy-done", "copy-start", "reshape", "transpose"}
MAX_CHAIN = 8  # copies of copies; compilers make two or three


def copy_scopes(recording: Recording) -> Text:
    """Return `allocations.scope`, with the scope of the copied value for copies that have none."""
    rows, program, graph = recording.allocations, recording.program, dataflow_graph(recording)
    if graph is None or program is None or program.value is None or program.scope.strings is not rows.scope.strings:
        return rows.scope
    values, strings = graph.values, rows.scope.strings
    named = np.r_[np.diff(strings.offsets) > 0, False]
    moves = program.op.isin(MOVES)
    made = np.maximum(values.producer, 0)
    scope = np.where(values.producer >= 0, program.scope.codes[made], -1)
    read = np.full(recording.length, -1, dtype=np.int32)
    read[values.use] = values.used_value
    read[np.bincount(values.use, minlength=recording.length) != 1] = -1
    moved = (values.producer >= 0) & ~named[scope] & moves[made] & (read[made] >= 0)
    origin = np.where(moved, read[made], np.arange(len(values)))
    for _ in range(MAX_CHAIN):
        origin = origin[origin]
    value = np.maximum(program.value, 0)
    wanted = (program.value >= 0) & ~named[rows.scope.codes] & moved[value]
    return Text(np.where(wanted, scope[origin[value]], rows.scope.codes).astype(np.int32), strings)
