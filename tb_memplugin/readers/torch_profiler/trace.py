"""A trace of torch.profiler: the [memory] events of each allocator, with its totals.

Operators and user annotations name allocations and steps.
"""

import json
import re

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import F64, I64, U8
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Role, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans, ReportedMemory
from tb_memplugin.model.text import Text
from tb_memplugin.native.text.strings import intern
from tb_memplugin.native.torch.trace_events import FIELDS, scan
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import (
    HAS,
    MAX_DEVICES,
    MAX_TIME_US,
    WAS,
    counted_caveat,
    impossible_bytes,
    is_plausible,
    too_many,
)
from tb_memplugin.readers.common.part import Origin
from tb_memplugin.readers.common.rows import pair
from tb_memplugin.readers.torch_profiler.exported_timeline import NS_PER_US, timeline_recording
from tb_memplugin.sizes import agree, counted

STEP_NAME = re.compile(r"ProfilerStep#\d+|step[ #_:]*\d+", re.IGNORECASE)


def annotation_kind(name: str) -> SpanKind:
    """Return STEP for the profiler's own step annotations and names such as "step 3", else ANNOTATION."""
    return SpanKind.STEP if STEP_NAME.fullmatch(name) else SpanKind.ANNOTATION


BACKWARD_PREFIX = "autograd::engine::evaluate_function: "  # prefix of operators of the backward pass
OperatorColumns = tuple[F64, F64, I64, U8, I64, I64]  # of native/torch/trace_events.pyx: scan


class EventHeads:
    """Operators and annotations of a trace, ordered by start; times in microseconds."""

    def __init__(self, raw: bytes | memoryview, columns: OperatorColumns) -> None:
        """Sort the operators that `scan` found in `raw`."""
        start, duration, thread, is_operator, name, name_length = columns
        kept = np.flatnonzero((start < MAX_TIME_US) & (duration < MAX_TIME_US))
        order = kept[np.argsort(start[kept], kind="stable")]
        self.start: F64 = start[order]
        self.end: F64 = self.start + duration[order]
        self.thread: I64 = thread[order]
        self.operator = is_operator[order] == 1
        self.name = _names(raw, name[order], name_length[order])

    def enclosing_operators(self, time: F64, thread: I64) -> Text:
        """Return the outermost operator around each time on its thread; empty where there is none."""
        operators = np.flatnonzero(self.operator)
        _, row = np.unique(np.r_[self.thread[operators], thread], return_inverse=True)
        _, rank = np.unique(np.r_[self.start[operators], self.end[operators], time], return_inverse=True)
        # All threads share one axis, on which each has a range of its own: the work does not grow with their number.
        n, stretch = len(operators), len(rank)
        start, end = row[:n] * stretch + rank[:n], row[:n] * stretch + rank[n : 2 * n]
        at = row[n:] * stretch + rank[2 * n :]
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        outer = np.flatnonzero(np.r_[True, start[1:] >= np.maximum.accumulate(end)[:-1]][:n])
        before = np.searchsorted(start[outer], at, side="right") - 1  # -1 takes the row that is appended
        inside = np.r_[end[outer], -1][before] >= at
        codes = self.name.codes[operators][order][outer]
        return Text(np.where(inside, np.r_[codes, -1][before], -1).astype(np.int32), self.name.strings)

    def annotations(self) -> NamedSpans | None:
        """Return the user annotations, in nanoseconds of the trace's clock; None where there are none."""
        which = np.flatnonzero(~self.operator)
        if not len(which):
            return None
        name = self.name.take(which)
        kinds = name.map(annotation_kind, SpanKind.ANNOTATION, np.uint8)
        start, end = (np.round(time[which] * NS_PER_US).astype(np.int64) for time in (self.start, self.end))
        return NamedSpans(name, kinds, start, end)


def _names(raw: bytes | memoryview, start: I64, length: I64) -> Text:
    """Read the names of operators, each distinct one once."""
    codes, first = intern(raw, start, length)
    spans = zip(start[first].tolist(), length[first].tolist(), strict=True)
    names = []
    for at, size in spans:
        quoted = bytes(raw[at : at + size])
        try:
            # JSON may contain half of a surrogate pair, which UTF-8 cannot encode.
            name = str(json.loads(quoted)).encode(errors="replace").decode()
        except ValueError:
            name = quoted.decode(errors="replace").strip('"')
        names.append(name.removeprefix(BACKWARD_PREFIX))
    return Text.of(names).take(codes)


DEVICES = {0: "cpu", 1: "cuda", 6: "hip"}  # PyTorch's DeviceType; ROCm devices may be either of the last two
EVENT_BYTES = 1024  # of an event while its columns are read; measured: 600


def read_memory_events(raw: bytes | memoryview, origin: Origin, budget: ReadBudget) -> list[Recording]:
    """Read one recording per device, in order of device number. Raises InputError."""
    try:
        (time, values), operators, damaged = scan(raw, budget.left // EVENT_BYTES)
    except MemoryError as error:
        raise budget.exceeded(budget.limit) from error
    budget.charge(EVENT_BYTES * (len(time) + len(operators[0])))
    if damaged:
        remedy = f"{counted(damaged, '[memory] event')} {agree(damaged, 'is', 'are')} damaged; export the trace again"
        raise InputError("Not a trace of torch.profiler", origin.source, remedy)
    if not len(time):
        remedy = "profile with torch.profiler.profile(profile_memory=True)"
        raise InputError("The trace has no [memory] events", origin.source, remedy)
    thread = values[:, len(FIELDS)]
    kept = is_plausible(values[:, 1:4]).all(axis=1) & (np.abs(time) < MAX_TIME_US)
    ignored = impossible_bytes(int((~kept).sum()), "event", HAS, "impossible sizes or times, which are ignored")
    time, values, thread = time[kept], values[kept], thread[kept]
    event_heads = EventHeads(raw, operators)
    operator, spans = event_heads.enclosing_operators(time, thread), event_heads.annotations()
    devices = np.unique(values[:, 4:6], axis=0)
    if len(devices) > MAX_DEVICES:
        raise too_many("devices", len(devices), MAX_DEVICES, origin.source)
    return [
        _device(kind, number, time[here], values[here], operator.take(np.flatnonzero(here)), spans, ignored, origin)
        for number, kind in devices.tolist()
        if (here := (values[:, 4] == number) & (values[:, 5] == kind)).any()
    ]


def _device(
    kind: int,
    number: int,
    time: F64,
    values: I64,
    operator: Text,
    spans: NamedSpans | None,
    ignored: list[Caveat],
    origin: Origin,
) -> Recording:
    order = np.argsort(time, kind="stable")
    address, change, allocated, reserved = values[order, :4].T
    frees, size, n = change < 0, np.abs(change), len(change)
    pairs = pair(address, frees, address >= 0)
    row = np.flatnonzero(~frees | (pairs.partner < 0))
    unmatched_free = frees[row]
    # A free names its own operator. The operator of an allocation from before the trace is unknown.
    name = np.where(unmatched_free, -1, operator.codes[order][row])
    start = np.where(unmatched_free, -1, row)
    end = np.where(unmatched_free, row, np.where(pairs.partner[row] >= 0, pairs.partner[row], n))
    has_total = allocated >= 0
    # A damaged free may have another size than its allocation, and the bytes in use would become negative.
    freed = np.flatnonzero(frees & (pairs.partner >= 0))
    change = np.array(change)
    change[freed] = -size[pairs.partner[freed]]
    traced = np.cumsum(change) + size[row][unmatched_free].sum()
    # Memory from before the trace that is never freed in it is the rest of the allocator's total.
    before = int(allocated[0] - traced[0]) if has_total.all() else 0
    rest = "made at an address in use; the earlier one is considered freed"
    caveats = [*ignored, *counted_caveat(CaveatCode.ADDRESS_TAKEN, pairs.address_taken, "allocation", WAS, rest)]
    if before > 0:
        start, end, size = np.r_[start, -1], np.r_[end, n], np.r_[size[row], before]
        address, name = np.r_[address[row], -1], np.r_[name, -1]
    else:
        size, address = size[row], address[row]
    memory = DEVICES.get(kind, f"device type {kind}")
    in_use = allocated if has_total.all() else traced
    return timeline_recording(
        origin,
        memory if number < 0 else f"{memory}:{number}",
        np.round(time[order] * NS_PER_US).astype(np.int64),
        start,
        end,
        size,
        np.full(len(size), Role.UNKNOWN, np.uint8),
        Text(name.astype(np.int32), operator.strings),
        address=address,
        reported=ReportedMemory(
            in_use=in_use,
            reserved=np.zeros(n, np.int64),
            free=np.where(reserved >= 0, np.maximum(reserved - in_use, 0), 0),
            lifetime_peak=np.maximum.accumulate(in_use),
            fragmentation=np.full(n, np.nan),
        ),
        reserved=reserved if (reserved > 0).all() else None,
        spans=spans,
        caveats=caveats,
    )
