"""What each allocator of a host did while the profile ran: one Recording per allocator, one position per event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.readers import allocator_events
from tb_memplugin.readers.allocator_caveats import caveats
from tb_memplugin.readers.allocator_events import MISSING, AllocatorEvents
from tb_memplugin.readers.device_spans import module_spans, with_modules
from tb_memplugin.readers.host_calls import HostCalls, host_calls, no_calls
from tb_memplugin.readers.pairing import pair
from tb_memplugin.readers.plane import Plane
from tb_memplugin.recording import (
    I32,
    I64,
    Allocations,
    Axis,
    Caveat,
    Recording,
    RegionKind,
    Regions,
    Reported,
    Role,
    Strings,
    Text,
)

TITLE = "allocator"
BEFORE = "live before the recording"
UNNAMED = "unnamed allocator"
NO_NAMES = {"", "dummy", "(null)"}  # what JAX's runtime puts where TensorFlow names the op

# TensorFlow's DataType, as allocator events give it; 0 is none.
DTYPES = {
    1: "f32", 2: "f64", 3: "s32", 4: "u8", 5: "s16", 6: "s8", 7: "string", 8: "c64", 9: "s64", 10: "pred",
    14: "bf16", 17: "u16", 18: "c128", 19: "f16", 22: "u32", 23: "u64",
}  # fmt: skip


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
            made = _recording(_Log(events, rows, calls.found), name, run, host, source)
            return _with_modules(made, (cores or {}).get(name), events.began_ns)

        return replace(_recording(_Log(events, rows, nothing), name, run, host, source), later=complete)

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
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


@dataclass(frozen=True)
class _Log:
    """The events of one allocator."""

    events: AllocatorEvents
    rows: I64
    calls: HostCalls

    @property
    def frame(self) -> I32:
        """Per event: the innermost frame that it was made in, -1 where nothing encloses it."""
        return self.calls.leaf[self.events.place[self.rows]]

    def number(self, name: str) -> I64:
        return self.events.numbers[name][self.rows]

    def text(self, name: str) -> Text:
        return self.events.texts[name].take(self.rows)

    @property
    def frees(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return self.events.frees[self.rows]


def _recording(log: _Log, memory: str, run: str, host: str, source: str) -> Recording:
    n = len(log.rows)
    frees, address, in_use = log.frees, log.number("addr"), log.number("bytes_allocated")
    partner, taken = pair(address, frees, address != MISSING)
    size = _sizes(log, partner)
    sized = size != MISSING
    size = np.maximum(size, 0)
    told = in_use != MISSING
    in_use = _filled(in_use, told, size, frees)
    change = np.where(frees, -size, size)

    allocated, orphans = np.flatnonzero(~frees), np.flatnonzero(frees & (partner < 0))
    before = int(in_use[0] - change[0] - size[orphans].sum())
    born = np.r_[allocated, orphans]  # the event that a row is known from
    rest = [n] if before > 0 else []
    start = np.r_[allocated, np.full(len(orphans) + len(rest), -1)]
    end = np.r_[np.where(partner[allocated] >= 0, partner[allocated], n), orphans, rest].astype(np.int64)
    sizes = np.r_[size[born], [before] if rest else []].astype(np.int64)
    requested = np.r_[_requested(log, size)[born], [before] if rest else []].astype(np.int64)
    count = len(start)
    base = int(address[address != MISSING].min()) if (address != MISSING).any() else 0
    offset = np.full(count, -1, dtype=np.int64)
    offset[: len(born)] = np.where(address[born] != MISSING, address[born] - base, -1)
    frame = np.r_[log.frame[allocated], np.full(len(orphans) + len(rest), -1)].astype(np.int32)
    # An allocation at an address that is still taken ends a row too, and frees nothing.
    freed = np.where((partner >= 0) & frees[partner], log.frame[partner], -1)[allocated]
    free_frame = np.r_[freed, log.frame[orphans], [-1] * len(rest)].astype(np.int32)
    rows = Allocations(
        id=np.r_[log.rows[born], [-1] * len(rest)].astype(np.int64),
        size=sizes,
        requested=requested,
        charge=sizes,
        start=start,
        end=end,
        defined=start,
        last_used=end - 1,
        region=np.zeros(count, dtype=np.int32),
        offset=offset,
        canonical=np.arange(count, dtype=np.int32),
        role=np.full(count, int(Role.UNKNOWN), dtype=np.uint8),
        stack=frame,
        name=_names(log, born, frame, rest=bool(rest)),
        shape=_with(log.text("shape").take(born), "", len(rest)),
        dtype=_dtypes(np.r_[log.number("data_type")[born], [0] * len(rest)]),
        op=_with(log.text("region_type").take(born), "", len(rest)),
        scope=Text(np.where(frame >= 0, log.calls.jitted.codes[frame], -1).astype(np.int32), log.calls.jitted.strings)
        if len(log.calls.jitted)
        else _with(Text(np.full(len(born), -1, dtype=np.int32), Strings.of([])), "", len(rest)),
    )
    reported = Reported(
        in_use=in_use,
        reserved=_last_told(log.number("bytes_reserved")),
        free=_last_told(log.number("bytes_available")),
        lifetime_peak=_or_zero(log.number("peak_bytes_in_use")),
        fragmentation=log.events.fragmentation[log.rows],
    )
    free_told = log.number("bytes_available") != MISSING
    counts = {
        "unnamed": n if memory == UNNAMED else 0,
        "no_address": (address == MISSING).sum(),
        "address_taken": taken,
        "in_use_untold": (~told).sum(),
        "free_untold": (~free_told).sum() if free_told.any() else 0,
        "in_use_differs": (np.diff(in_use) != change[1:]).sum(),
        "size_untold": (~sized).sum(),
        "impossible_bytes": log.events.impossible[log.rows].sum(),
        "fragmentation_untold": np.isnan(reported.fragmentation).sum(),
        "out_of_order": log.events.out_of_order[log.rows].sum(),
        "unknown_stats": log.events.unknown[log.rows].sum(),
        "unknown_dtype": (~np.isin(log.number("data_type"), [MISSING, 0, *DTYPES])).sum(),
    }
    extent = int((offset + sizes)[offset >= 0].max(initial=0))
    return Recording(
        kind="allocator",
        title=TITLE,
        run=run,
        host=host,
        source=source,
        memory=memory,
        axis=Axis.TIME,
        length=n,
        allocations=rows,
        regions=Regions(np.array([base]), np.array([extent]), np.array([int(RegionKind.TEMPORARY)], np.uint8)),
        stacks=log.calls.stacks,
        spans=log.calls.spans,
        free_stack=free_frame,
        reported=reported,
        clock=log.events.time_ps[log.rows] // 1000,
        reported_peak=int(reported.lifetime_peak.max()) or None,
        capacity=int((in_use + reported.reserved + reported.free)[free_told].max(initial=0)) or None,
        caveats=caveats(before, int(size[orphans].sum()), n, {code: int(count) for code, count in counts.items()}),
    )


def _names(log: _Log, born: I64, frame: I32, *, rest: bool) -> Text:
    """The op where the runtime names one, else the frame that it was made in, else nothing."""
    ops, functions = log.text("tf_op").take(born), log.calls.stacks.function
    named = np.array([ops.strings[i] not in NO_NAMES for i in range(len(ops.strings))] + [False])[ops.codes]
    inside = frame[: len(born)]
    code = np.where(inside >= 0, functions.codes[inside], -1) if len(functions) else np.full(len(born), -1)
    strings = Strings.joined(ops.strings, functions.strings)
    codes = np.where(named, ops.codes, np.where(code >= 0, len(ops.strings) + code, -1)).astype(np.int32)
    return _with(Text(codes, strings), BEFORE, int(rest))


def _sizes(log: _Log, partner: I64) -> I64:
    """Bytes of each event's allocation, as placed; MISSING where nothing tells.

    TPU's frees do not say: theirs is their allocation's, else what the memory in use fell by.
    """
    size, requested, in_use = (log.number(n) for n in ("allocation_bytes", "requested_bytes", "bytes_allocated"))
    size = np.where(size == MISSING, requested, size)
    step = np.abs(np.diff(in_use, prepend=in_use[0]))
    step[(in_use == MISSING) | (np.r_[MISSING, in_use[:-1]] == MISSING)] = MISSING
    matched = log.frees & (partner >= 0)
    size = np.where(matched & (size == MISSING), size[partner], size)
    return np.where(size == MISSING, step, size)


def _requested(log: _Log, size: I64) -> I64:
    """Bytes asked for; as placed where the event does not tell, which is no more than unknown padding."""
    requested = log.number("requested_bytes")
    return np.where(requested == MISSING, size, np.minimum(requested, size))


def _filled(in_use: I64, told: np.ndarray[tuple[int], np.dtype[np.bool_]], size: I64, frees: np.ndarray) -> I64:
    """Bytes in use after each event; where it does not tell, what the last before it told, else the first after it,
    and what happened in between. Where none tells, the least that it can have been."""
    if told.all():
        return in_use
    change = np.cumsum(np.where(frees, -size, size))
    if told.any():
        last = np.maximum.accumulate(np.where(told, np.arange(len(told)), int(np.argmax(told))))
        anchor = in_use[last] - change[last]
    else:
        anchor = np.full(len(told), -min(0, int(change.min())))
    filled: I64 = anchor + change
    return filled


def _last_told(numbers: I64) -> I64:
    """What each event tells, else the last before it that did, else the first; 0 where none does."""
    told = numbers != MISSING
    if told.all() or not told.any():
        return _or_zero(numbers)
    last = np.maximum.accumulate(np.where(told, np.arange(len(told)), int(np.argmax(told))))
    filled: I64 = numbers[last]
    return filled


def _or_zero(numbers: I64) -> I64:
    zeroed: I64 = np.where(numbers == MISSING, 0, numbers)
    return zeroed


def _with(text: Text, last: str, count: int) -> Text:
    """The column, and `count` (0 or 1) rows more that say `last`."""
    strings = text.strings
    added = Strings(strings.blob + last.encode(), np.r_[strings.offsets, strings.offsets[-1] + len(last.encode())])
    return Text(np.r_[text.codes, np.full(count, len(strings))].astype(np.int32), added)


def _dtypes(numbers: I64) -> Text:
    known = sorted(DTYPES)
    code = np.searchsorted(known, numbers)
    code = np.where(np.isin(numbers, known), code, -1)
    return Text(code.astype(np.int32), Strings.of([DTYPES[number] for number in known]))
