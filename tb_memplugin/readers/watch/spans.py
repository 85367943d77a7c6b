"""Steps and out-of-memory errors of a watch file, as spans."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.source_tables import NamedSpans
from tb_memplugin.model.text import Text
from tb_memplugin.readers.watch.layout import RecordColumn, RecordEvent

OUT_OF_MEMORY = "out of memory"


def read_spans(records: I64, clock: I64, start_ns: int) -> NamedSpans:
    """Return the spans of records: a span for the step of each, or the steps, where several began between two samples.

    `clock`: nanoseconds since `start_ns`, for each record.
    """
    number, began = records[:, RecordColumn.STEP], records[:, RecordColumn.STEP_TIME] - start_ns
    at = np.flatnonzero((number >= 0) & (began >= 0) & (began <= clock))
    latest = np.maximum.accumulate(began[at])
    at = at[np.diff(latest, prepend=-1) > 0]  # the first record of each step
    step, start = number[at], began[at]
    end = np.r_[start[1:], clock[-1:]] if len(at) else start
    failed = np.flatnonzero(records[:, RecordColumn.EVENT] == RecordEvent.OUT_OF_MEMORY)
    following = np.r_[step[1:], step[-1:] + 1]
    count = np.maximum(following - step, 1)
    names = [*_names(step, count), *[OUT_OF_MEMORY] * len(failed)]
    kind = np.repeat([SpanKind.STEP, SpanKind.OUT_OF_MEMORY], [len(at), len(failed)]).astype(np.uint8)
    starts, ends = np.r_[start, clock[failed]], np.r_[end, clock[failed]]
    order = np.argsort(starts, kind="stable")
    counts = np.r_[count, np.zeros_like(failed)]
    return NamedSpans(Text.of(names).take(order), kind[order], starts[order], ends[order], counts[order])


def _names(step: I64, count: I64) -> list[str]:
    """Name each span of `count` steps. Steps between two samples are in the span of the first of them."""
    pairs = zip(step.tolist(), count.tolist(), strict=True)
    return [f"step {first}" if many == 1 else f"steps {first} to {first + many - 1}" for first, many in pairs]
