"""What each allocator of a host did while the profile ran: one Recording per allocator, one position per event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.kinds import Axis, RecordingKind, RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Regions, ReportedMemory
from tb_memplugin.readers.xplane.allocator import events as allocator_events
from tb_memplugin.readers.xplane.allocator.caveats import caveats
from tb_memplugin.readers.xplane.allocator.events import MISSING, AllocatorEvents
from tb_memplugin.readers.xplane.allocator.lifetimes import DTYPES, lifetimes
from tb_memplugin.readers.xplane.allocator.log import AllocatorLog
from tb_memplugin.readers.xplane.device.spans import module_spans, with_modules
from tb_memplugin.readers.xplane.host.calls import HostCalls, host_calls, no_calls
from tb_memplugin.readers.xplane.planes import Plane

TITLE = "allocator"
UNNAMED = "unnamed allocator"
# Of tb_memplugin.capture, which tells what came and went when it looks: what it is called from then made nothing.
LOOKED_AT = " live arrays"


class _Calls:
    """The stacks of one plane's allocator events, found when first asked for and once for all of its allocators.

    They take several times as long as all the rest, since for them every event of the host must be looked at.
    """

    def __init__(self, plane: Plane, source: str) -> None:
        self._plane = plane
        self._source = source

    @cached_property
    def found(self) -> HostCalls:
        try:
            return host_calls(self._plane, allocator_events.ids(self._plane))
        except ValueError as error:
            raise InputError(f"the host's events are damaged ({error})", self._source, "profile again") from error


def read_allocators(
    plane: Plane, cores: Mapping[str, Plane] | None = None, *, run: str, host: str, source: str
) -> list[Recording]:
    """In the order in which people count: GPU_2_bfc before GPU_10_bfc. Stacks and spans come with `complete`.

    `cores`: by a memory's name, the plane of its device. Raises InputError where the host's plane is damaged.
    """
    try:
        events = allocator_events.read(plane)
    except ValueError as error:
        raise InputError(f"the host's events are damaged ({error})", source, "profile again") from error
    if events is None:
        return []
    names, which = memories(events)
    calls, nothing = _Calls(plane, source), no_calls(len(events))

    def recording(number: int) -> Recording:
        name, rows = names[number], np.flatnonzero(which == number)

        def complete() -> Recording:
            found = replace(calls.found, leaf=nothing.leaf) if name.endswith(LOOKED_AT) else calls.found
            made = _recording(AllocatorLog(events, rows, found), name, run, host, source)
            return _with_modules(made, (cores or {}).get(name), events.began_ns)

        return replace(_recording(AllocatorLog(events, rows, nothing), name, run, host, source), later=complete)

    return [recording(number) for number in sorted(range(len(names)), key=lambda number: counted(names[number]))]


def _with_modules(recording: Recording, device: Plane | None, began_ns: int) -> Recording:
    """With the executions that the device tells of itself, where it does."""
    if device is None or recording.spans is None:
        return recording
    try:
        return replace(recording, spans=with_modules(recording.spans, module_spans(device, began_ns)))
    except ValueError as error:
        text = f"The device's own executions cannot be read ({error}); the host's calls are shown."
        return replace(recording, caveats=(*recording.caveats, Caveat("device_damaged", text)))


def memories(events: AllocatorEvents) -> tuple[list[str], I64]:
    """The memories that the events name, and which of them each event is about."""
    code, index = events.texts["allocator_name"].codes.astype(np.int64), events.numbers["index_on_host"]
    # An allocator's name wins; without one, TPU's runtime numbers its cores, from 0.
    key = np.where(code >= 0, code, -2 - np.maximum(index, -1))
    keys, which = np.unique(key, return_inverse=True)
    strings = events.texts["allocator_name"].strings
    names = [strings[k] if k >= 0 else UNNAMED if k == -1 else f"TPU core {-2 - k}" for k in keys.tolist()]
    # One name may be spelt out in some events and referred to in others.
    distinct, same = np.unique(names, return_inverse=True)
    return distinct.tolist(), same.ravel()[which.ravel()].astype(np.int64)


def counted(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers within names by their value."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def _recording(log: AllocatorLog, memory: str, run: str, host: str, source: str) -> Recording:
    found = lifetimes(log)
    rows, free_told = found.rows, log.number("bytes_available") != MISSING
    reported = ReportedMemory(
        in_use=log.in_use,
        reserved=log.last_told("bytes_reserved"),
        free=log.last_told("bytes_available"),
        lifetime_peak=np.maximum(log.number("peak_bytes_in_use"), 0),
        fragmentation=log.events.fragmentation[log.rows],
    )
    whole = reported.in_use + reported.reserved + reported.free
    extent = int((rows.offset + rows.size)[rows.offset >= 0].max(initial=0))
    counts = _counts(log, unnamed=memory == UNNAMED)
    return Recording(
        kind=RecordingKind.ALLOCATOR,
        title=TITLE,
        run=run,
        host=host,
        source=source,
        memory=memory,
        axis=Axis.TIME,
        length=len(log),
        allocations=rows,
        regions=Regions(np.array([found.base]), np.array([extent]), np.array([int(RegionKind.TEMPORARY)], np.uint8)),
        stacks=log.calls.stacks,
        spans=log.calls.spans,
        free_stack=found.free_stack,
        reported=reported,
        clock=log.events.time_ps[log.rows] // 1000,
        reported_peak=int(reported.lifetime_peak.max()) or None,
        capacity=int(whole[free_told].max(initial=0)) or None,
        caveats=caveats(found.before, found.orphaned, found.orphans, len(log), counts),
    )


def _counts(log: AllocatorLog, *, unnamed: bool) -> dict[str, int]:
    """Of how many events each caveat is."""
    events, rows = log.events, log.rows
    free_told = log.number("bytes_available") != MISSING
    masks = {
        "unnamed": np.full(len(log), unnamed),
        "no_address": log.address == MISSING,
        "in_use_untold": log.number("bytes_allocated") == MISSING,
        "free_untold": ~free_told & free_told.any(),
        "in_use_differs": np.diff(log.in_use) != log.change[1:],
        "size_untold": log.told_size == MISSING,
        "impossible_bytes": events.impossible[rows],
        "fragmentation_untold": np.isnan(events.fragmentation[rows]),
        "out_of_order": events.out_of_order[rows],
        "unknown_stats": events.unknown[rows],
        "unknown_dtype": ~np.isin(log.number("data_type"), [MISSING, 0, *DTYPES]),
    }
    return {"address_taken": log.pairs.taken, **{code: int(mask.sum()) for code, mask in masks.items()}}
