"""The positions at which a recording's steps end, and the step in which each row was allocated."""

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import Axis, RecordingKind, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.sizes import counted

# One step to warm up, and four that can each show growth. With fewer, noise looks like a trend.
MIN_STEPS = 5
MARK_IN_JAX = "wrap each iteration of the loop in jax.profiler.StepTraceAnnotation('train', step_num=step)."
HOW_TO_MARK = {
    RecordingKind.TORCH_SNAPSHOT: (
        "wrap each iteration of the loop in torch.profiler.record_function(f'step {number}') "
        "(PyTorch 2.5 or later), or record with tb_memplugin.capture.torch_memory and its step(number)."
    ),
    RecordingKind.TORCH_TIMELINE: (
        "call step() of torch.profiler.profile at the end of each iteration, and export its trace."
    ),
}


class Steps(NamedTuple):
    """`position[i]` is the last event at or before the end of step i, -1 for none; it never decreases.

    Without marked steps, the runs of a repeated program count as steps: `marked` is False, and `unit` names the
    program. A training or serving loop usually runs its program once in each iteration, so memory that grows with each
    run grows with each iteration. But several runs may be parts of one step.
    """

    position: I64
    unit: str
    marked: bool
    message: str  # the reason why there are none, or the substitute
    counts: I64 | None = None  # steps that end at each position; None where each is one


def steps(recording: Recording) -> Steps:
    """Find a recording's steps. Steps that overlap, as on several threads, count as one."""
    spans, clock = recording.spans, recording.clock
    if clock is None and recording.axis is Axis.TIME and recording.length > 1:
        return _no_steps("The events have no timestamps, so steps cannot be found.")
    if clock is None:
        return _no_steps("This recording is not a record over time, so growth over steps cannot be measured.")
    if not len(clock):
        return _no_steps("There are no allocator events.")
    if spans is None or not len(spans):
        return _no_steps(f"The profile marks no steps: {HOW_TO_MARK.get(recording.kind, MARK_IN_JAX)}")
    is_step = spans.kind == SpanKind.STEP
    marked = _union_ends(spans, is_step)
    if len(marked) >= MIN_STEPS:
        # Only spans of samples may stand for several steps, and these do not overlap.
        counts = None if spans.steps is None else spans.steps[is_step]
        return Steps(np.searchsorted(clock, marked, side="right") - 1, "step", True, "", counts)
    name, ends = _most_repeated(spans)
    if len(ends) >= MIN_STEPS:
        found = counted(len(marked), "step") if len(marked) else "no steps"
        text = f"The profile marks {found}; the {len(ends):,} runs of {name} are used instead."
        return Steps(np.searchsorted(clock, ends, side="right") - 1, f"run of {name}", False, text)
    return _no_steps(
        f"Growth needs at least {MIN_STEPS} steps; this profile has {len(marked):,}."
        if len(marked)
        else "The profile marks no steps, and no program in it repeats often enough to use its runs instead."
    )


def names_at(recording: Recording, kind: SpanKind, position: int) -> list[str]:
    """Return the names of the spans of a kind around an event, in order of their starts."""
    spans, clock = recording.spans, recording.clock
    if spans is None or clock is None or not 0 <= position < len(clock):
        return []
    time = clock[position]
    inside = np.flatnonzero((spans.kind == kind) & (spans.start_ns <= time) & (time < spans.end_ns))
    return [spans.name[span] for span in inside.tolist()]


def step_at(recording: Recording, position: int) -> str:
    """Return the name of the marked step around an event, empty for none; if there are several, the last to begin."""
    return (names_at(recording, SpanKind.STEP, position) or [""])[-1]


def _no_steps(message: str) -> Steps:
    return Steps(np.empty(0, dtype=np.int64), "step", False, message)


def _union_ends(spans: NamedSpans, which: Mask) -> I64:
    """Return the ends, in ns, of the unions of overlapping spans; spans are in order of their starts."""
    start, end = spans.start_ns[which], spans.end_ns[which]
    reach: I64 = np.maximum.accumulate(end)
    is_last: Mask = np.r_[start[1:] >= reach[:-1], True][: len(reach)]  # the next span begins after all before it
    return reach[is_last]


def _contains_execution(spans: NamedSpans) -> Mask:
    """Mark the spans in which an execution begins, its own span included; all if no execution is recorded.

    A span without an execution, such as saving a checkpoint, may repeat and take time without being the loop.
    """
    begin = spans.start_ns[spans.kind == SpanKind.EXECUTION]
    around = np.searchsorted(begin, spans.start_ns) < np.searchsorted(begin, spans.end_ns)
    return around if len(begin) else np.ones(len(spans), dtype=bool)


def _most_repeated(spans: NamedSpans) -> tuple[str, I64]:
    """Return the repeated name that takes the most time, which is the outermost loop's, and its ends in ns."""
    code = spans.name.codes.astype(np.int64) + 1
    time = np.bincount(code, np.where(_contains_execution(spans), spans.end_ns - spans.start_ns, 0))
    time[np.bincount(code) < MIN_STEPS] = 0
    chosen = int(np.argmax(time))
    if not time[chosen]:
        return "", np.empty(0, dtype=np.int64)
    return (spans.name.strings[chosen - 1] if chosen else "unnamed spans"), _union_ends(spans, code == chosen)


# Steps overlap if several threads each run a loop. A span that began more steps ago than this is not a step.
MAX_OVERLAPPING = 64


@memoize
def allocation_step(recording: Recording) -> Text:
    """Return the name of each row's step, empty for none; if there are several, the last to begin, as in step_at."""
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
