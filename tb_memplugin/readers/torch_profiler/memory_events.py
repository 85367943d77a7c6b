"""The [memory] events of a torch.profiler trace: allocations and frees of each allocator, with its totals."""

from __future__ import annotations

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import F64, I64
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.source_tables import NamedSpans, ReportedMemory
from tb_memplugin.model.text import Text
from tb_memplugin.native.torch.trace_events import FIELDS, scan
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import MAX_DEVICES, MAX_TIME_US, impossible_bytes, is_plausible, too_many
from tb_memplugin.readers.common.pairing import pair
from tb_memplugin.readers.torch_profiler.operators import EventHeads
from tb_memplugin.readers.torch_profiler.timeline import FileOrigin, timeline_recording
from tb_memplugin.sizes import agree, counted

DEVICES = {0: "cpu", 1: "cuda", 6: "hip"}  # PyTorch's DeviceType; ROCm devices may be either of the last two
NS_PER_US = 1000
EVENT_BYTES = 1024  # of an event while its columns are read; measured: 600


def read_memory_events(raw: bytes | memoryview, origin: FileOrigin, budget: ReadBudget) -> list[Recording]:
    """Read one recording per device, in order of device number. Raises InputError."""
    try:
        (time, values), operators, damaged = scan(raw, budget.left // EVENT_BYTES)
    except MemoryError as error:
        raise budget.exceeded(budget.limit) from error
    budget.charge(EVENT_BYTES * (len(time) + len(operators[0])))
    if damaged:
        remedy = f"{counted(damaged, '[memory] event')} {agree(damaged, 'is', 'are')} damaged; export the trace again"
        raise InputError("Not a trace of torch.profiler", origin[2], remedy)
    if not len(time):
        remedy = "profile with torch.profiler.profile(profile_memory=True)"
        raise InputError("The trace has no [memory] events", origin[2], remedy)
    thread = values[:, len(FIELDS)]
    kept = is_plausible(values[:, 1:4]).all(axis=1) & (np.abs(time) < MAX_TIME_US)
    ignored = impossible_bytes(
        int((~kept).sum()), "event", ("has", "have"), "impossible sizes or times, which are ignored"
    )
    time, values, thread = time[kept], values[kept], thread[kept]
    event_heads = EventHeads(raw, operators)
    operator, spans = event_heads.enclosing_operators(time, thread), event_heads.annotations()
    devices = np.unique(values[:, 4:6], axis=0)
    if len(devices) > MAX_DEVICES:
        raise too_many("devices", len(devices), MAX_DEVICES, origin[2])
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
    origin: FileOrigin,
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
    # A damaged free may have another size than its allocation, so that less than nothing would be in use.
    freed = np.flatnonzero(frees & (pairs.partner >= 0))
    change = np.array(change)
    change[freed] = -size[pairs.partner[freed]]
    traced = np.cumsum(change) + size[row][unmatched_free].sum()
    # Memory from before the trace that is never freed in it is the rest of the allocator's total.
    before = int(allocated[0] - traced[0]) if has_total.all() else 0
    caveats = [*ignored]
    if pairs.address_taken:
        text = (
            f"{counted(pairs.address_taken, 'allocation')} {agree(pairs.address_taken, 'was', 'were')} made at an "
            "address in use; the earlier one is considered freed."
        )
        caveats.append(Caveat(CaveatCode.ADDRESS_TAKEN, text))
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
