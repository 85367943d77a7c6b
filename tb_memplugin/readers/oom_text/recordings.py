"""Recordings of out-of-memory failures, at one instant."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Axis, RecordingKind
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import ReportedMemory
from tb_memplugin.readers.oom_text.failure import MAX_TOTAL_BYTES, Failure, Rows
from tb_memplugin.sizes import bytes_text


def recordings(failures: list[Failure], *, run: str, host: str, source: str) -> list[Recording]:
    """Build one recording per failure; the order is their rank. Several failures of one memory are numbered."""
    memory_count: Counter[str] = Counter()
    found = []
    for rank, failure in enumerate(failures):
        memory = failure.memory or "device memory"
        memory_count[memory] += 1
        memory = memory if memory_count[memory] == 1 else f"{memory} ({memory_count[memory]})"
        found.append(_recording(failure, _title(failure), memory, rank, run, host, source))
    return found


def _title(failure: Failure) -> str:
    """Return the title, with the size that distinguishes the failures of one log."""
    title = f"OOM in {failure.program}" if failure.program else "OOM"
    if failure.out_of_memory.asked is None:
        return title
    verb = "needed" if failure.out_of_memory.phase is OutOfMemoryPhase.COMPILE else "requested"
    return f"{title}: {bytes_text(failure.out_of_memory.asked)} {verb}"


def _recording(failure: Failure, title: str, memory: str, rank: int, run: str, host: str, source: str) -> Recording:
    rows, damaged = _drop_impossible(failure.rows)
    listed = rows.bytes
    # The text's sum is rounded and may omit some of the listed buffers.
    used = max(failure.used, listed) if failure.used is not None else listed
    out_of_memory = replace(failure.out_of_memory, rank=rank)
    return Recording(
        kind=RecordingKind.OUT_OF_MEMORY,
        title=title,
        run=run,
        host=host,
        source=source,
        memory=memory,
        axis=Axis.INSTANT,
        length=1,
        allocations=rows.allocations,
        regions=rows.regions,
        stacks=rows.stacks,
        reported=_reported(out_of_memory, used, failure.lifetime_peak),
        reported_peak=failure.lifetime_peak,
        capacity=out_of_memory.capacity,
        out_of_memory=out_of_memory,
        program_chunks=rows.program_chunks,
        caveats=(*_list_caveats(failure, listed, used), *damaged, *failure.caveats),
    )


def _reported(out_of_memory: OutOfMemory, used: int, peak: int | None) -> ReportedMemory:
    free, largest = out_of_memory.free, out_of_memory.largest_free
    fragmentation = 1 - largest / free if free and largest is not None and largest <= free else np.nan
    return ReportedMemory(
        in_use=np.array([used]),
        reserved=np.array([0]),
        free=np.array([free or 0]),
        lifetime_peak=np.array([used if peak is None else peak]),
        fragmentation=np.array([fragmentation]),
    )


CUT = "The text ends inside its list of buffers; the bytes are those not listed"
LARGEST_ONLY = "The text lists only the largest buffers; the bytes are those not listed"
NO_LIST = "The text states how much memory was in use, but not by which buffers"


def _list_caveats(failure: Failure, listed: int, used: int) -> list[Caveat]:
    """Return a caveat about memory that the text does not list."""
    if failure.cut:
        return [Caveat(CaveatCode.TEXT_CUT, CUT, used - listed or None)]
    if not len(failure.rows):
        return [Caveat(CaveatCode.NOTHING_LISTED, NO_LIST, used or None)]
    return [Caveat(CaveatCode.NOT_LISTED, LARGEST_ONLY, used - listed)] if used > listed else []


def _drop_impossible(rows: Rows) -> tuple[Rows, list[Caveat]]:
    if rows.allocations.size.sum(dtype=np.float64) <= MAX_TOTAL_BYTES:
        return rows, []
    return Rows(), [Caveat(CaveatCode.IMPOSSIBLE_SIZES, "The listed sizes exceed any memory and are ignored")]
