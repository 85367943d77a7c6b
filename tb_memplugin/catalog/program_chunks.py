"""Links from annotated chunks of an allocator's dump to the buffers of compiled programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.isolate import failure
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

CHUNK_BYTES = 256  # sizes of chunks are multiples of it


class ChunkTexts(NamedTuple):
    """The texts of a chunk's row."""

    name: str
    op: str
    shape: str
    dtype: str
    scope: str


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
    return [_link(recording, found) if recording.program_chunks is not None else recording for recording in recordings]


def _link(recording: Recording, programs: tuple[Recording, ...]) -> Recording:
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
    texts = []
    for (_, index, size), row in zip(distinct.tolist(), first.tolist(), strict=True):
        own = ChunkTexts(rows.name[row], rows.op[row], rows.shape[row], rows.dtype[row], rows.scope[row])
        texts.append(_texts_of(chunks.program[row], index, size, programs) or own)
    columns = (Text.of(column).take(inverse.reshape(-1)) for column in zip(*texts, strict=True))
    name, op, shape, dtype, scope = columns
    return replace(recording, allocations=replace(rows, name=name, op=op, shape=shape, dtype=dtype, scope=scope))


def _texts_of(name: str, index: int, size: int, programs: tuple[Recording, ...]) -> ChunkTexts | None:
    """Return the texts of the largest buffer in a buffer allocation; None where no program has it in this size."""
    best: tuple[int, Recording, int] | None = None
    for program in programs:
        if program.program is None or program.program.module != name:
            continue
        for region in np.flatnonzero(program.regions.index == index).tolist():
            rounded = -(-int(program.regions.size[region]) // CHUNK_BYTES) * CHUNK_BYTES
            slack = size - rounded
            # Of a program that was compiled again, the nearest. The allocator splits a chunk of twice the size.
            if 0 <= slack < rounded and (best is None or slack < best[0]):
                best = slack, program, region
    if best is None:
        return None
    rows = best[1].allocations
    inside = np.flatnonzero(rows.region == best[2])
    if not len(inside):
        return None
    row = int(inside[np.argmax(rows.size[inside])])
    return ChunkTexts(f"{name}: {rows.name[row]}", rows.op[row], rows.shape[row], rows.dtype[row], rows.scope[row])
