"""Recordings of allocators for programs of steps, built from known allocations and frees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.kinds import Axis, RecordingKind, RegionKind, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Allocations, NamedSpans, Regions, ReportedMemory, Stacks
from tb_memplugin.model.text import Text

MICROSECOND = 1_000
STEP_NS = 1_000 * MICROSECOND


class Block(NamedTuple):
    """A block allocated in `step` and freed in the step `until` (None: never); -1 is before the recording."""

    site: str
    size: int
    step: int
    until: int | None
    stack: int = -1


def allocator(
    blocks: Sequence[Block], steps: int, *, marked: Sequence[tuple[str, SpanKind]] = (("train", SpanKind.STEP),)
) -> Recording:
    """Return a recording with one event after another: in each step all allocations, then all frees.

    `marked`: the spans that mark each step, each inside the one before.
    """
    born = [i for i, block in enumerate(blocks) if block.step >= 0]
    freed = [i for i, block in enumerate(blocks) if block.until is not None]
    events = sorted([(blocks[i].step, 0, i) for i in born] + [(blocks[i].until or 0, 1, i) for i in freed])
    n = len(events)
    start, end = np.full(len(blocks), -1), np.full(len(blocks), n)
    change, clock, within = [], [], [0] * steps
    for position, (step, free, i) in enumerate(events):
        (end if free else start)[i] = position
        change.append(-blocks[i].size if free else blocks[i].size)
        clock.append(step * STEP_NS + within[step])
        within[step] += 1
    assert max(within, default=0) < STEP_NS // 2
    size = np.array([block.size for block in blocks], dtype=np.int64)
    in_use = np.cumsum(np.array(change, dtype=np.int64)) + int(size[start < 0].sum())
    sites = Text.of([block.site for block in blocks])
    nothing = Text.of([""] * len(blocks))
    return Recording(
        kind=RecordingKind.ALLOCATOR,
        title="allocator",
        run="run",
        host="host",
        source="/logdir/host.xplane.pb",
        memory="GPU_0_bfc",
        axis=Axis.TIME,
        length=n,
        allocations=Allocations(
            id=np.arange(len(blocks)),
            size=size,
            requested=size,
            charge=size,
            start=start,
            end=end,
            defined=start,
            last_used=end - 1,
            region=np.zeros(len(blocks), np.int32),
            offset=np.full(len(blocks), -1),
            canonical=np.arange(len(blocks), dtype=np.int32),
            role=np.zeros(len(blocks), np.uint8),
            stack=np.array([block.stack for block in blocks], np.int32),
            name=sites,
            shape=Text.of([f"f32[{block.size // 4}]" for block in blocks]),
            dtype=Text.of(["f32"] * len(blocks)),
            op=nothing,
            op_name=sites,
        ),
        regions=Regions(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([RegionKind.TEMPORARY], np.uint8)),
        stacks=Stacks(
            np.array([-1, 0], np.int32),
            Text.of(["main", "layer"]),
            Text.of(["train.py", "model.py"]),
            np.array([10, 20], np.int32),
        ),
        reported=ReportedMemory(
            in_use=in_use,
            reserved=np.zeros(n, np.int64),
            free=2**30 - in_use,
            lifetime_peak=np.maximum.accumulate(in_use) if n else in_use,
            fragmentation=np.zeros(n),
        ),
        clock=np.array(clock, dtype=np.int64),
        spans=_spans(steps, marked),
        reported_peak=int(in_use.max(initial=0)),
        capacity=2**30,
    )


def _spans(steps: int, marked: Iterable[tuple[str, SpanKind]]) -> NamedSpans:
    """Check that every span covers its step's events, and ends before the next step."""
    rows = [
        (step * STEP_NS, (step + 1) * STEP_NS - depth - 1, name, kind)
        for step in range(steps)
        for depth, (name, kind) in enumerate(marked)
    ]
    return NamedSpans(
        Text.of([row[2] for row in rows]),
        np.array([row[3] for row in rows], np.uint8),
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
    )
