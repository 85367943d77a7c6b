"""Where the steps of a recording end, among the positions of its axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis, RecordingKind, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans

# One to warm up and four that can each show growth: in fewer, chance looks like a trend.
MIN_STEPS = 5
MARK_IN_JAX = "wrap each iteration of the loop in jax.profiler.StepTraceAnnotation('train', step_num=step)."
HOW_TO_MARK = {
    RecordingKind.TORCH_SNAPSHOT: (
        "wrap each iteration of the loop in torch.profiler.record_function(f'step {number}'), from "
        "PyTorch 2.5 on, or record with tb_memplugin.capture.torch_memory and its step(number)."
    ),
    RecordingKind.TORCH_TIMELINE: (
        "call step() of torch.profiler.profile at the end of each iteration, and export its trace."
    ),
}


class Steps(NamedTuple):
    """`position[i]`: the last event at or before the end of step i, -1 where there is none; never decreasing.

    Without marked steps, runs of what repeats stand in for them: then `marked` is False and `unit` says of what. A
    training or serving loop runs its program once an iteration, so what grows with each run grows with each
    iteration; but a run may also be a part of one step that the profile did not see to its end.
    """

    position: I64
    unit: str
    marked: bool
    message: str  # why there are none, or what stands in for them


def steps(recording: Recording) -> Steps:
    """Steps that lie one after another; those that overlap, as on several threads at once, count as one."""
    spans, clock = recording.spans, recording.clock
    if clock is None and recording.axis is Axis.TIME and recording.length > 1:
        return _no_steps("Its events have no times, so that no steps can be found among them.")
    if clock is None:
        return _no_steps("This recording is not a record over time, so nothing can be seen to grow from step to step.")
    if not len(clock):
        return _no_steps("There are no allocator events.")
    if spans is None or not len(spans):
        return _no_steps(f"The profile marks no steps: {HOW_TO_MARK.get(recording.kind, MARK_IN_JAX)}")
    marked = _union_ends(spans, spans.kind == SpanKind.STEP)
    if len(marked) >= MIN_STEPS:
        return Steps(_last_positions(clock, marked), "step", True, "")
    name, ends = _most_repeated(spans)
    if len(ends) >= MIN_STEPS:
        found = _count_text(len(marked)) if len(marked) else "no steps"
        text = f"The profile marks {found}; the {len(ends)} runs of {name} stand in for them."
        return Steps(_last_positions(clock, ends), f"run of {name}", False, text)
    return _no_steps(
        f"Growth needs at least {MIN_STEPS} steps; this profile has {len(marked)}."
        if len(marked)
        else "The profile marks no steps, and nothing in it repeats often enough to stand in for them."
    )


def _count_text(steps: int) -> str:
    return f"{steps} step{'s' * (steps != 1)}"


def step_at(recording: Recording, position: int) -> str:
    """The name of the marked step that the event at a position is in, of several the last to begin; empty for none."""
    spans, clock = recording.spans, recording.clock
    if spans is None or clock is None or not 0 <= position < len(clock):
        return ""
    time = clock[position]
    inside = np.flatnonzero((spans.kind == SpanKind.STEP) & (spans.start_ns <= time) & (time < spans.end_ns))
    return spans.name[int(inside[-1])] if len(inside) else ""


def _no_steps(message: str) -> Steps:
    return Steps(np.empty(0, dtype=np.int64), "step", False, message)


def _last_positions(clock: I64, ends: I64) -> I64:
    found: I64 = np.searchsorted(clock, ends, side="right") - 1
    return found


def _union_ends(spans: NamedSpans, which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> I64:
    """Ends, in ns, of the unions of spans that overlap; spans are in order of their starts."""
    start, end = spans.start_ns[which], spans.end_ns[which]
    reach: I64 = np.maximum.accumulate(end)
    opens = np.flatnonzero(np.r_[True, start[1:] >= reach[:-1]]) if len(start) else np.empty(0, dtype=np.int64)
    return reach[np.r_[opens[1:] - 1, len(reach) - 1]] if len(opens) else reach


def _contains_execution(spans: NamedSpans) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which spans an execution begins in, its own too: a checkpoint repeats and takes time, and is no loop.

    All where no execution is told.
    """
    begin = spans.start_ns[spans.kind == SpanKind.EXECUTION]
    around = np.searchsorted(begin, spans.start_ns) < np.searchsorted(begin, spans.end_ns)
    return around if len(begin) else np.ones(len(spans), dtype=bool)


def _most_repeated(spans: NamedSpans) -> tuple[str, I64]:
    """The name that takes most time among those that repeat, which is the outermost loop's, and its ends in ns."""
    code = spans.name.codes.astype(np.int64) + 1
    time = np.bincount(code, np.where(_contains_execution(spans), spans.end_ns - spans.start_ns, 0))
    time[np.bincount(code) < MIN_STEPS] = 0
    chosen = int(np.argmax(time))
    if not time[chosen]:
        return "", np.empty(0, dtype=np.int64)
    return (spans.name.strings[chosen - 1] if chosen else "unnamed spans"), _union_ends(spans, code == chosen)
