"""Recordings of failures, at one instant, after messages about one failure are merged.

The allocator, XLA, the framework and the traceback may each write a message.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Axis, RecordingKind
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import ReportedMemory
from tb_memplugin.readers.common.part import Origin
from tb_memplugin.readers.oom_text.failure import MAX_TOTAL_BYTES, Failure, Rows, no_rows
from tb_memplugin.readers.oom_text.message import FIGURES
from tb_memplugin.readers.oom_text.normalize import NormalizedText
from tb_memplugin.sizes import bytes_text

MAX_WORKERS = 20  # that a sentence names
MAX_DISTANCE = 8  # failures; repeated reports of a failure are close together
ONE_ALLOCATION = {"bfc", "xla", "tensor", "driver"}  # tools of different layers that report the same request


def merge(failures: Iterable[Failure]) -> list[Failure]:
    """Merge failures that describe the same event, in order of the text."""
    unique: list[Failure] = []
    for failure in sorted(failures, key=lambda failure: failure.at):
        for index in range(len(unique) - 1, max(len(unique) - MAX_DISTANCE, 0) - 1, -1):
            if (combined := _combine(unique[index], failure)) is not None:
                unique[index] = combined
                break
        else:
            unique.append(failure)
    return unique


def _combine(earlier: Failure, later: Failure) -> Failure | None:
    """Combine two reports of one failure; None where they describe two."""
    if earlier.tool == "remat" and later.tool in ("remat", "xla", "bfc"):
        caveats = () if later.tool == "remat" else earlier.caveats
        return replace(later, at=earlier.at, caveats=(*later.caveats, *caveats))
    if earlier.worker and later.worker and earlier.worker != later.worker:
        return None
    other_memory = earlier.memory and later.memory and earlier.memory != later.memory
    if other_memory or not _same_size(earlier.out_of_memory.asked, later.out_of_memory.asked):
        return None
    if not _same_list(earlier, later) if earlier.tool == later.tool else not _same_request(earlier, later):
        return None
    first, second = (earlier, later) if _completeness(earlier) > _completeness(later) else (later, earlier)
    return replace(
        first,
        at=min(first.at, second.at),
        memory=first.memory or second.memory,
        program=first.program or second.program,
        worker=first.worker or second.worker,
        out_of_memory=_fill_missing(first.out_of_memory, second.out_of_memory),
        caveats=(*first.caveats, *(caveat for caveat in second.caveats if caveat not in first.caveats)),
    )


def _same_list(earlier: Failure, later: Failure) -> bool:
    """Return True where both are the same message, complete or cut off."""
    again = earlier.rows.bytes == later.rows.bytes and len(earlier.rows) == len(later.rows)
    return again or not len(earlier.rows) or not len(later.rows) or earlier.cut or later.cut


def _same_request(earlier: Failure, later: Failure) -> bool:
    """Return True where two tools report one request. Lists of a program and of its allocator are not combined."""
    return {earlier.tool, later.tool} <= ONE_ALLOCATION and not (len(earlier.rows) and len(later.rows))


def _fill_missing(first: OutOfMemory, second: OutOfMemory) -> OutOfMemory:
    """Fill the missing figures of the first report from the second."""
    missing = {name: getattr(second, name) for name in FIGURES if getattr(first, name) is None}
    wanted = [second.wanted_by, first.wanted_by] if second.wanted_by != first.wanted_by else [first.wanted_by]
    short, *longer = sorted(filter(None, wanted), key=len) or [""]
    wanted_by = longer[0] if longer and short in longer[0] else ", ".join([short, *longer])
    return replace(first, **missing, wanted_by=wanted_by)


def _same_size(one: int | None, other: int | None) -> bool:
    """Compare sizes. Allocators round up to 256 bytes, and a size printed in three digits is off by half a percent."""
    if one is None or other is None:
        return one is other
    return abs(one - other) * 200 <= max(one, other) + 200 * 512


def _figure_count(failure: Failure) -> int:
    said = failure.out_of_memory
    return sum(number is not None for number in (said.asked, said.free, said.capacity, said.in_use))


def _completeness(failure: Failure) -> tuple[int, int]:
    return len(failure.rows), _figure_count(failure)


def rank(failures: Iterable[Failure]) -> list[Failure]:
    """Sort failures: those with buffers, then those with more figures; of equals the last, which ended the run."""
    return sorted(
        failures,
        key=lambda failure: (len(failure.rows) > 0, min(_figure_count(failure), 2), failure.at),
        reverse=True,
    )


def recordings(failures: list[Failure], page: NormalizedText, origin: Origin) -> list[Recording]:
    """Build one recording per failure; the order is their rank. Several failures of one memory are numbered."""
    memory_count: Counter[str] = Counter()
    found = []
    for rank, failure in enumerate(_folded(failures)):
        memory = failure.memory or "device memory"
        memory_count[memory] += 1
        memory = memory if memory_count[memory] == 1 else f"{memory} ({memory_count[memory]})"
        failure = failure.saying(rank=rank, lines_before=page.lines_before(failure.at))
        found.append(_recording(replace(failure, memory=memory), origin))
    return found


def _folded(failures: list[Failure]) -> Iterator[Failure]:
    """Return each failure once, with a caveat where the text has equal ones, as of several workers or attempts."""
    equal: dict[tuple[object, ...], list[Failure]] = {}
    for failure in failures:
        said = failure.out_of_memory
        key = (failure.tool, failure.memory, failure.program, said.asked, said.free, said.in_use, failure.rows.bytes)
        equal.setdefault(key, []).append(failure)
    for first, *others in equal.values():
        if others:
            workers = list(dict.fromkeys(failure.worker for failure in (first, *others) if failure.worker))
            of = f", of {', '.join(workers[:MAX_WORKERS])}" if workers else ""
            text = f"The text has this failure {len(others) + 1} times{of}"
            first = replace(
                first,
                worker=workers[0] if len(workers) == 1 else "",
                caveats=(*first.caveats, Caveat(CaveatCode.REPEATED, text)),
            )
        yield first


def _title(failure: Failure) -> str:
    """Return the title, with the size that distinguishes the failures of one log."""
    title = f"OOM in {failure.program}" if failure.program else "OOM"
    title = f"{title} of {failure.worker}" if failure.worker else title
    if failure.out_of_memory.asked is None:
        return title
    verb = "needed" if failure.out_of_memory.phase is OutOfMemoryPhase.COMPILE else "requested"
    return f"{title}: {bytes_text(failure.out_of_memory.asked)} {verb}"


def _recording(failure: Failure, origin: Origin) -> Recording:
    rows, damaged = _drop_impossible(failure.rows)
    listed = rows.bytes
    # The text's sum is rounded and may omit some of the listed buffers.
    used = max(failure.used, listed) if failure.used is not None else listed
    out_of_memory = failure.out_of_memory
    return Recording(
        **origin._asdict(),
        kind=RecordingKind.OUT_OF_MEMORY,
        title=_title(failure),
        memory=failure.memory,
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
    return no_rows(), [Caveat(CaveatCode.IMPOSSIBLE_SIZES, "The listed sizes exceed any memory and are ignored")]
