"""Advice on arguments that the program never reads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import arguments, function_name
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value, uses
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all arrays that are neither read nor returned."""
    rows = _never_read_rows(recording)
    if not len(rows):
        return
    saved = saving(recording, resize_rows(recording, rows, np.zeros(len(rows), dtype=np.int64)))
    if saved is None:
        return
    size = int(recording.allocations.size[rows].sum())
    ordered = sort_by_size(recording, rows)
    names = [a.name for a in arguments(recording) if np.isin(a.rows, rows).any()]
    yield Advice(
        kind=AdviceKind.UNUSED,
        title=f"Remove unused arguments: {', '.join(names)}",
        sentence=f"{counted(len(rows), 'array')} of the arguments, {bytes_text(size)}, "
        f"{agree(len(rows), 'is', 'are')} neither read nor returned; the largest is "
        f"{recording.allocations.scope[int(ordered[0])]}. Removing {agree(len(rows), 'it', 'them')} {saved.effect}.",
        change=f"remove them from the arguments of {function_name(recording)}, or leave keep_unused=False, with which "
        "JAX drops them",
        rows=ordered,
        bytes=size,
        saving=saved,
        edits=("drop-unused",),
    )


def _never_read_rows(recording: Recording) -> I64:
    graph = dataflow_graph(recording)
    if graph is None:
        return np.empty(0, dtype=np.int64)
    values = graph.values
    given = np.flatnonzero(values.argument >= 0)
    returned = np.isin(given, values.result) | np.isin(given, values.loop_carried[0])
    row = row_of_value(recording)[given[~returned]]
    row = row[row >= 0].astype(np.int64)
    begin, _ = uses(recording)
    unread: I64 = row[begin[row + 1] == begin[row]]
    return unread
