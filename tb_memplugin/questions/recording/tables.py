"""Tables of a recording: its allocations, the regions that they lie in, and the positions of its axis."""

from collections.abc import Collection
from typing import Any

import numpy as np

from tb_memplugin.analysis.fragmentation import addresses, region_numbers
from tb_memplugin.analysis.usage.live_bytes import count_stacks, peak, unexplained_bytes
from tb_memplugin.analysis.usage.steps import step_at
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.questions.asking.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.asking.payload import Table, columns_of, encode, narrow
from tb_memplugin.questions.recording.columns import PAGE_COLUMNS, ChosenRows

SPANS = ("name", "kind", "start_ns", "end_ns")
INSTRUCTIONS = ("name", "op", "op_name", "computation")


@endpoint("rows", RECORDING, report=EACH_CHOICE)
def rows(recording: Recording) -> bytes:
    """Return tables of every allocation (`rows`), its `regions`, the axis (`program`) and, over time, `spans`."""
    everything, program = np.arange(len(recording.allocations)), recording.program
    meta: dict[str, Any] = {}
    if recording.free_stack is not None:
        meta = {"stacks": count_stacks(recording)._asdict(), "peak_step": step_at(recording, peak(recording).position)}
    return encode(
        meta,
        {
            "rows": row_table(recording, everything),
            "regions": _region_table(recording),
            "program": _event_table(recording) if program is None else columns_of(program, INSTRUCTIONS),
            **({"spans": columns_of(recording.spans, SPANS)} if recording.spans is not None else {}),
        },
    )


def row_table(recording: Recording, which: I64, without: Collection[str] = ()) -> Table:
    """Return these rows of the allocation table, with sources, and with what data flow reveals: roles and copies."""
    rows = ChosenRows(recording, which)
    return {
        column.name: column.array(rows)
        for column in PAGE_COLUMNS
        if column.name not in without and (column.is_sent is None or column.is_sent(recording))
    }


def address_table(recording: Recording, which: I64) -> Table:
    """Return the source's number of each row's region, and each row's address; NaN where they are unknown."""
    found = addresses(recording, which)
    return {
        "region_index": np.where(found.in_region, found.region.astype(np.float64), np.nan),
        "address": np.where(found.addressed, found.address.astype(np.float64), np.nan),
    }


def _region_table(recording: Recording) -> Table:
    """Return the regions. `base` stacks them on one axis of bytes: temporaries first, then the others, in file order.

    Like a row, a region exists at positions start <= p < end. `index` is the source's number of it, `address` is
    where it begins; NaN where they are unknown.
    """
    regions, index = recording.regions, region_numbers(recording).astype(np.float64)
    temporary = regions.kind == RegionKind.TEMPORARY
    order = np.argsort(~temporary, kind="stable")
    base = np.zeros(len(regions), dtype=np.int64)
    base[order] = np.cumsum(np.r_[0, regions.size[order]])[:-1]
    kinds, code = np.unique(regions.kind, return_inverse=True)
    labels = Strings.of([RegionKind(kind).label for kind in kinds.tolist()])
    return {
        "kind": Text(code.astype(np.int32), labels),
        "index": index,
        "address": index if recording.kind.has_addresses else np.full(len(index), np.nan),
        "size": regions.size,
        "base": base,
        "temporary": temporary.astype(np.uint8),
        "start": narrow(regions.start if regions.start is not None else np.full(len(regions), -1)),
        "end": narrow(regions.end if regions.end is not None else np.full(len(regions), recording.length)),
    }


def _event_table(recording: Recording) -> Table:
    """Return the event of an allocator, or the sample of a job, at each position of the axis."""
    n = recording.length
    state = recording.caching_allocator
    if recording.sampling is not None:
        kind = _steps_of_samples(recording)
    else:
        kind = _event_kinds(recording) if state is None or state.events is None else state.events
    nothing = Text(np.full(n, -1, dtype=np.int32), Strings.of([]))
    # A single moment needs no time. The page numbers several events that have none.
    clock = np.zeros(1, dtype=np.int64) if n == 1 else recording.clock
    times = {"time_ns": clock} if clock is not None else {}
    return {
        "name": kind,
        "op": kind,
        "op_name": nothing,
        "computation": nothing,
        **times,
        "unexplained": unexplained_bytes(recording),
    }


def _event_kinds(recording: Recording) -> Text:
    """Name each event `allocation` or `free`, from the rows that start or end there."""
    rows, n = recording.allocations, recording.length
    allocated, freed = rows.start[(rows.start >= 0) & (rows.start < n)], rows.end[rows.end < n]
    is_free = np.zeros(n, dtype=np.int32)
    is_free[freed] = 1
    is_free[allocated] = 0
    return Text(is_free, Strings.of(["allocation", "free"]))


def _steps_of_samples(recording: Recording) -> Text:
    """Name each sample of a job by the step that ran, which is the last one to begin."""
    spans, clock = recording.spans, recording.clock
    if spans is None or clock is None:
        return Text(np.full(recording.length, -1, dtype=np.int32), Strings.of([]))
    steps = np.flatnonzero(spans.kind == SpanKind.STEP)
    step = np.searchsorted(spans.start_ns[steps], clock, side="right") - 1
    runs = (step >= 0) & (clock < np.append(spans.end_ns[steps], 0)[step])
    return Text(np.where(runs, np.append(spans.name.codes[steps], -1)[step], -1).astype(np.int32), spans.name.strings)
