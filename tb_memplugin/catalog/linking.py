"""Links of a run's recordings: snapshots to memory timelines, and chunks of an allocator's dump to programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tb_memplugin.analysis.isolate import failure
from tb_memplugin.model.kinds import RecordingKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text


def link_timelines(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings, with each snapshot linked to the timelines of its run that have categories.

    The same snapshot and timelines give the same recording, so that memoized results are found again.
    """
    kept = (r for r in recordings if r.kind is RecordingKind.TORCH_TIMELINE and r.capture_info is not None)
    timelines = [timeline for timeline in kept if (timeline.allocations.role != Role.UNKNOWN).any()]
    return [
        _with_timelines(r, tuple(timeline for timeline in timelines if timeline.run == r.run))
        if r.kind.has_tensor_stacks
        else r
        for r in recordings
    ]


def _with_timelines(snapshot: Recording, timelines: tuple[Recording, ...]) -> Recording:
    if not timelines or timelines == snapshot.timelines:
        return snapshot
    linked: Recording | None = snapshot.memo.get(link_timelines)
    if linked is None or linked.timelines != timelines:
        linked = snapshot.memo[link_timelines] = replace(snapshot, timelines=timelines)
    return linked


CHUNK_BYTES = 256  # sizes of chunks are multiples of it
TEXTS = ("name", "op", "shape", "dtype", "op_name")  # columns of allocations that describe a buffer


def chunk_programs(recordings: Sequence[Recording]) -> set[str]:
    """Return the names of the programs that chunks are annotated with."""
    annotated = (r.program_chunks for r in recordings if r.program_chunks is not None)
    return {name for chunks in annotated for name in chunks.program.strings if name}


def link_chunks(recordings: Sequence[Recording], programs: Sequence[Recording] | None = None) -> list[Recording]:
    """Return the recordings, with annotated chunks described by the largest buffer that they are for.

    `programs` defaults to those among the recordings. The same inputs give the same recordings, so that memoized
    results are found again.
    """
    names = chunk_programs(recordings)
    if not names:
        return list(recordings)
    found = tuple(p for p in (recordings if programs is None else programs) if p.program and p.program.module in names)
    return [
        _with_programs(recording, found) if recording.program_chunks is not None else recording
        for recording in recordings
    ]


def _with_programs(recording: Recording, programs: tuple[Recording, ...]) -> Recording:
    if not programs:
        return recording
    known: tuple[tuple[Recording, ...], Recording] | None = recording.memo.get(link_chunks)
    if known is None or known[0] != programs:
        try:
            described = _described(recording, programs)
        except Exception as error:
            failure(recording, error)  # logged; without descriptions, the recording still has its own names
            described = recording
        known = recording.memo[link_chunks] = programs, described
    return known[1]


def _described(recording: Recording, programs: tuple[Recording, ...]) -> Recording:
    chunks, rows = recording.program_chunks, recording.allocations
    if chunks is None:
        return recording
    pairs = np.stack([chunks.program.codes.astype(np.int64), chunks.allocation, rows.size], axis=1)
    distinct, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    named = [(chunks.program[row], index, size) for (_, index, size), row in zip(distinct.tolist(), first, strict=True)]
    chosen = {name: _likeliest(recording, name, named, programs) for name in chunks.program.strings if name}
    texts = []
    for (_, index, size), row in zip(distinct.tolist(), first.tolist(), strict=True):
        module = chunks.program[row]
        texts.append(_texts_of(module, index, size, chosen.get(module, ())) or [getattr(rows, of)[row] for of in TEXTS])
    columns = (Text.of(column).take(inverse.reshape(-1)) for column in zip(*texts, strict=True))
    described: dict[str, Any] = dict(zip(TEXTS, columns, strict=True))
    return replace(recording, allocations=replace(rows, **described))


def _likeliest(
    error: Recording, name: str, chunks: Sequence[tuple[str, int, int]], programs: Sequence[Recording]
) -> Sequence[Recording]:
    """Return the recordings of the program of a name that most of its chunks fit, if possible of the error's run.

    `chunks`: the program's name, the allocation and the size of each.
    """
    found: dict[tuple[str, str, str], list[Recording]] = {}
    for program in programs:
        if program.program is not None and program.program.module == name:
            found.setdefault((program.run, program.host, program.title), []).append(program)

    def fit(of: tuple[str, str, str]) -> tuple[int, bool, int]:
        slacks = [_nearest(index, size, found[of]).slack for named, index, size in chunks if named == name]
        fitting = [slack for slack in slacks if slack is not None]
        return len(fitting), of[0] == error.run, -sum(fitting)

    return found[max(found, key=fit)] if found else ()


class Region(NamedTuple):
    """The memory of a buffer allocation in one of a program's recordings; `slack`: None where no memory fits."""

    slack: int | None
    program: Recording | None = None
    row: int = -1


def _nearest(index: int, size: int, programs: Sequence[Recording]) -> Region:
    """Return the memory of a buffer allocation that a chunk of this size is for."""
    best = Region(None)
    for program in programs:
        for row in np.flatnonzero(program.regions.index == index).tolist():
            rounded = -(-int(program.regions.size[row]) // CHUNK_BYTES) * CHUNK_BYTES
            slack = size - rounded
            # The allocator splits a chunk of twice the size.
            if 0 <= slack < rounded and (best.slack is None or slack < best.slack):
                best = Region(slack, program, row)
    return best


def _texts_of(module: str, index: int, size: int, programs: Sequence[Recording]) -> list[str]:
    """Return the texts of the largest buffer in a buffer allocation; none where no program has it in this size."""
    region = _nearest(index, size, programs)
    if region.program is None:
        return []
    rows = region.program.allocations
    inside = np.flatnonzero(rows.region == region.row)
    if not len(inside):
        return []
    name, *others = (getattr(rows, column)[int(inside[np.argmax(rows.size[inside])])] for column in TEXTS)
    return [f"{module}: {name}", *others]
