"""Recordings of a host's allocators, with one position per event, and caveats about gaps and contradictions."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Axis, RecordingKind
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.recording import LazyRecording, Recording
from tb_memplugin.model.tables import ReportedMemory
from tb_memplugin.native.xplane.stats import MISSING
from tb_memplugin.numbered_names import natural_key
from tb_memplugin.readers.common import table_builder
from tb_memplugin.readers.common.part import Origin
from tb_memplugin.readers.xplane.allocator.events import AllocatorEvents, read_allocator_events
from tb_memplugin.readers.xplane.allocator.lifetimes import (
    AllocatorLog,
    Lifetimes,
    dtypes,
    free_stacks,
    lifetimes,
    with_stacks,
)
from tb_memplugin.readers.xplane.host_calls import HostCalls, host_calls
from tb_memplugin.readers.xplane.planes import Plane, allocator_event_ids
from tb_memplugin.readers.xplane.spans import merge_spans, module_spans
from tb_memplugin.sizes import agree, counted

# Per code: the verb for one event, the verb for several, and the rest of the sentence.
EVENT_CAVEATS = {
    CaveatCode.UNNAMED: ("names", "name", "neither an allocator nor a device; such events are assigned to one memory."),
    CaveatCode.NO_ADDRESS: ("has", "have", "an impossible address; such allocations and frees cannot be paired."),
    CaveatCode.ADDRESS_TAKEN: (
        "allocates", "allocate", "at an address in use; the earlier allocation is considered freed.",
    ),
    CaveatCode.IN_USE_MISSING: (
        "does", "do", "not report bytes in use; this is computed from the sizes of the events.",
    ),
    CaveatCode.FREE_MISSING: ("does", "do", "not report free bytes; the last reported value is used."),
    CaveatCode.IN_USE_DIFFERS: (
        "changes", "change", "the bytes in use by more or less than the event's size: some events are missing.",
    ),
    CaveatCode.SIZE_MISSING: ("does", "do", "not report a size; a missing size counts as 0 bytes."),
    CaveatCode.IMPOSSIBLE_BYTES: ("reports", "report", "sizes below 0 or above 1 PiB; those are ignored."),
    CaveatCode.FRAGMENTATION_MISSING: ("reports", "report", "no fragmentation between 0 and 1."),
    CaveatCode.OUT_OF_ORDER: ("is", "are", "earlier than the previous event on the same thread; events are sorted."),
    CaveatCode.UNKNOWN_STATS: ("has", "have", "stats that this version does not read."),
    CaveatCode.UNKNOWN_DTYPE: ("has", "have", "an unknown data type."),
}  # fmt: skip


def _caveats(log: AllocatorLog, lives: Lifetimes, *, unnamed: bool) -> tuple[Caveat, ...]:
    """Return the caveats of one allocator."""
    found = []
    before, orphans, events = lives.before, lives.orphans, counted(len(log), "event")
    if before > 0 or orphans:
        text = "Allocated before the recording started; the allocation site is unknown."
        if orphans:
            text += f" {orphans:,} of {events} {agree(orphans, 'frees', 'free')} part of it."
        found.append(Caveat(CaveatCode.LIVE_BEFORE, text, max(before, 0) + lives.orphaned))
    if before < 0:
        text = "More bytes were freed than were in use when the recording started."
        found.append(Caveat(CaveatCode.FREED_MORE, text, -before))
    counts = _count_caveats(log, unnamed=unnamed)
    for code, (singular, plural, rest) in EVENT_CAVEATS.items():
        if count := counts[code]:
            found.append(Caveat(code, f"{count:,} of {events} {agree(count, singular, plural)} {rest}"))
    return tuple(found)


TITLE = "allocator"
MAX_MEMORIES = 1000
UNNAMED = "unnamed allocator"
# tb_memplugin.capture logs the changes since its last sample. The stack of a sample is not where arrays were allocated.
SAMPLED_SUFFIX = " live arrays"


def _calls(plane: Plane, events: int, source: str) -> HostCalls:
    """Read the stacks of a plane's allocator events, of which there are so many."""
    try:
        calls = host_calls(plane, allocator_event_ids(plane))
        if len(calls.leaf) != events:  # only where the plane contradicts itself
            raise ValueError(f"{events:,} allocator events, but {len(calls.leaf):,} with calls")
    except ValueError as error:
        raise _damaged(error, source) from error
    return calls


def _damaged(error: ValueError, source: str) -> InputError:
    return InputError(f"the host's events are damaged ({error})", source, "profile again")


def read_allocators(
    plane: Plane, cores: Mapping[str, Plane] | None = None, *, run: str, host: str, source: str
) -> list[Recording]:
    """Read one Recording per allocator, in natural order: GPU_2_bfc before GPU_10_bfc.

    `cores`: the device planes by the name of their memory. Call stacks and spans are read on demand. Raises InputError
    where the host's plane is damaged.
    """
    origin = Origin(run, host, source)
    try:
        events = read_allocator_events(plane)
    except ValueError as error:
        raise _damaged(error, source) from error
    if events is None:
        return []
    names, which = memories(events)
    if len(names) > MAX_MEMORIES:  # each is a recording
        raise InputError(f"{len(names):,} allocators in one profile", source, "the file is damaged: profile again")
    # Shared by all allocators. Stacks take several times as long as the rest, as every event of the host is parsed.
    host_stacks = Lazy(partial(_calls, plane, len(events), source))
    rows = _group(which, len(names))

    def recording(number: int) -> Recording:
        name, log = names[number], AllocatorLog(events, rows[number])
        outline, file_row, frees = _recording(log, name, origin), log.of_own(events.file_row), log.frees

        def complete() -> Recording:
            calls = host_stacks()
            frame = calls.leaf[file_row] if not name.endswith(SAMPLED_SUFFIX) else np.full(len(frees), -1, np.int32)
            with_calls = replace(
                outline,
                allocations=with_stacks(outline.allocations, frame, calls),
                stacks=calls.stacks,
                spans=calls.spans,
                free_stack=free_stacks(outline.allocations, frame, frees),
            )
            return _add_device_executions(with_calls, (cores or {}).get(name), events.start_ns)

        return LazyRecording.of(outline, complete)

    return [recording(number) for number in sorted(range(len(names)), key=lambda at: natural_key(names[at]))]


def _add_device_executions(recording: Recording, device: Plane | None, start_ns: int) -> Recording:
    """Add the executions from the device's own plane, where it has any."""
    if device is None or recording.spans is None:
        return recording
    try:
        return replace(recording, spans=merge_spans(recording.spans, module_spans(device, start_ns)))
    except ValueError as error:
        text = f"The device's record of executions is damaged ({error}); the host's calls are shown instead."
        return replace(recording, caveats=(*recording.caveats, Caveat(CaveatCode.DEVICE_DAMAGED, text)))


def memories(events: AllocatorEvents) -> tuple[list[str], I64]:
    """Return the names of the memories, and per event the index of its memory."""
    code, index = events.texts["allocator_name"].codes.astype(np.int64), events.numbers["index_on_host"]
    # An allocator's name has priority. TPU's runtime writes no name, but numbers its cores from 0.
    key = np.where(code >= 0, code, -2 - np.clip(index, -1, 2**62))  # a damaged index must not overflow
    if (key == key[0]).all():  # as in most profiles; sorting takes longer
        keys, which = key[:1], np.zeros(len(key), dtype=np.int64)
    else:
        keys, which = np.unique(key, return_inverse=True)
    strings = events.texts["allocator_name"].strings
    names = [strings[k] if k >= 0 else UNNAMED if k == -1 else f"TPU core {-2 - k}" for k in keys.tolist()]
    # A name may be inline in some events and a reference in others.
    distinct = sorted(set(names))  # an array of texts would take the length of the longest for each
    row = {name: k for k, name in enumerate(distinct)}
    same = np.array([row[name] for name in names], dtype=np.int64)
    return distinct, same[which.ravel()]


def _group(which: I64, count: int) -> list[I64]:
    """Return the rows of each number below `count`, in order."""
    order = np.argsort(which.astype(np.int16), kind="stable")  # by counting, as the numbers are below MAX_MEMORIES
    return np.split(order, np.cumsum(np.bincount(which, minlength=count))[:-1])


def _recording(log: AllocatorLog, memory: str, origin: Origin) -> Recording:
    found = lifetimes(log)
    rows, free_present = found.rows, log.number("bytes_available") != MISSING
    reported = ReportedMemory(
        in_use=log.in_use,
        reserved=log.forward_fill("bytes_reserved"),
        free=log.forward_fill("bytes_available"),
        lifetime_peak=np.maximum(log.number("peak_bytes_in_use"), 0),
        fragmentation=log.of_own(log.events.fragmentation),
    )
    total = reported.in_use + reported.reserved + reported.free
    extent = int((rows.offset + rows.size)[rows.offset >= 0].max(initial=0))
    return Recording(
        **origin._asdict(),
        kind=RecordingKind.ALLOCATOR,
        title=TITLE,
        memory=memory,
        axis=Axis.TIME,
        length=len(log),
        allocations=rows,
        regions=table_builder.segments(np.array([found.base_address]), np.array([extent])),
        stacks=table_builder.no_stacks(),
        spans=table_builder.no_spans(),
        free_stack=rows.stack,  # all unknown
        reported=reported,
        clock=log.of_own(log.events.time_ps) // 1000,
        reported_peak=int(reported.lifetime_peak.max()) or None,
        capacity=int(total[free_present].max(initial=0)) or None,
        caveats=_caveats(log, found, unnamed=memory == UNNAMED),
    )


def _count_caveats(log: AllocatorLog, *, unnamed: bool) -> dict[CaveatCode, int]:
    """Count the events that each caveat concerns, by its code."""
    columns = log.events
    free_present, data_type = log.number("bytes_available") != MISSING, log.number("data_type")
    concerned = {
        CaveatCode.UNNAMED: np.full(len(log), unnamed),
        CaveatCode.NO_ADDRESS: log.address == MISSING,
        CaveatCode.ADDRESS_TAKEN: log.pairs.address_taken,
        CaveatCode.IN_USE_MISSING: log.number("bytes_allocated") == MISSING,
        CaveatCode.FREE_MISSING: ~free_present & free_present.any(),
        CaveatCode.IN_USE_DIFFERS: np.diff(log.in_use) != log.change[1:],
        CaveatCode.SIZE_MISSING: log.reported_size == MISSING,
        CaveatCode.IMPOSSIBLE_BYTES: log.of_own(columns.impossible),
        CaveatCode.FRAGMENTATION_MISSING: np.isnan(log.of_own(columns.fragmentation)),
        CaveatCode.OUT_OF_ORDER: log.of_own(columns.out_of_order),
        CaveatCode.UNKNOWN_STATS: log.of_own(columns.unknown),
        CaveatCode.UNKNOWN_DTYPE: (dtypes(data_type).codes < 0) & (data_type != MISSING) & (data_type != 0),
    }
    return {code: int(np.sum(events)) for code, events in concerned.items()}
