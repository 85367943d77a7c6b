"""The marked step in which each row was allocated."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text

# Steps overlap where several threads run a loop each. A span that began more steps ago than this is not a step.
MAX_OVERLAPPING = 64


@memoize
def allocation_step(recording: Recording) -> Text:
    """Return the name of each row's step, empty for none; of several steps the last to begin, as step_at does."""
    start, spans, clock = recording.allocations.start, recording.spans, recording.clock
    steps = np.flatnonzero(spans.kind == SpanKind.STEP) if spans is not None else np.empty(0, dtype=np.int64)
    if spans is None or clock is None or not len(steps):
        return Text(np.full(len(start), -1, dtype=np.int32), Strings.of([]))
    begin, end = spans.start_ns[steps], spans.end_ns[steps]
    recorded = start >= 0
    time = np.r_[clock, 0][np.where(recorded, start, -1)]
    step = np.where(recorded, np.searchsorted(begin, time, side="right") - 1, -1)
    reach = np.maximum.accumulate(end)  # the latest end among all steps so far
    step[(step >= 0) & (reach[step] <= time)] = -1
    for _ in range(MAX_OVERLAPPING):
        ended = np.flatnonzero((step >= 0) & (end[step] <= time))
        if not len(ended):
            break
        step[ended] -= 1
    step[(step >= 0) & (end[step] <= time)] = -1
    return Text(np.where(step >= 0, spans.name.codes[steps][step], -1).astype(np.int32), spans.name.strings)
