"""The data of charts: memory in use at each position in buckets, lifetimes of allocations, and holes in free memory."""

from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.fragmentation import fragmentation, unplaced_bytes
from tb_memplugin.analysis.fragmentation import holes as free_runs_at
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import buckets, unexplained_bytes
from tb_memplugin.analysis.usage.live_bytes import usage as usage_of
from tb_memplugin.model.arrays import F64, I64
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import OUTLINE, Integer, last_position
from tb_memplugin.questions.asking.payload import Column, Table, encode, narrow

# As many as a wide screen has pixels. The first view has all positions of a recording that is no longer than this.
FIRST_BUCKETS = 4096
# The allocator's own figures that a recording over time may have. The payload's `held` is reserved bytes.
REPORTED = ("held", "heap", "stack", "free", "largest_free", "fragmentation")
DEFAULT_BUCKETS = 1024
MAX_BUCKETS = 8192  # twice the pixels of a wide screen; the page requests one bucket per pixel


def _all_positions(recording: Recording) -> bytes:
    return usage(recording, 0, recording.length, recording.length)


@endpoint(
    "usage",
    OUTLINE,
    Integer("from", -1, lambda recording: recording.length, default=0),
    Integer("to", lambda _, start: start, lambda recording, _: recording.length, default=lambda r, _: r.length),
    Integer("buckets", 1, MAX_BUCKETS, default=DEFAULT_BUCKETS),
    report=InReport(
        # The first view has all positions of shorter ones.
        lambda recording: not recording.kind.has_call_graph and recording.length > FIRST_BUCKETS,
        every=_all_positions,
    ),
)
def usage(recording: Recording, start: int, end: int, count: int) -> bytes:
    """Return the usage of positions [start, end) in at most `count` buckets, as the table `usage`."""
    return encode({"from": start, "to": end}, {"usage": usage_table(recording, start, end, count)})


def usage_table(recording: Recording, start: int, end: int, count: int) -> Table:
    """Return the largest and smallest live bytes, with and without padding, of each bucket.

    Of a recording over time, return also the time of each bucket's first event in ns, and the allocator's own figures.
    These are `heap` and `stack`, whose sum is `live`, `held`, `free` and `largest_free` in bytes, and `fragmentation`
    from 0 to 1. Each has its largest and smallest value in the bucket, NaN where it is unknown.
    """
    live = buckets(usage_of(recording), start, end, count)
    table: Table = {**live._asdict(), "position": narrow(live.position)}
    if recording.axis is not Axis.TIME:
        return table
    clock = recording.clock
    time = clock[live.position] if clock is not None else live.position
    stop = min(end, recording.length)
    reported = {
        f"{name}_{which}": reduce.reduceat(column[:stop], live.position) if len(live.position) else column[:0]
        for name, column in _reported(recording).items()
        for which, reduce in (("max", np.fmax), ("min", np.fmin))
    }
    return {**table, "time_ns": time.astype(np.int64), **reported}


@memoize
def _reported(recording: Recording) -> dict[str, I64 | F64]:
    """Return the allocator's own figures and the layout of its free memory, at every event."""
    pieces, reported = fragmentation(recording), recording.reported
    if recording.reserved is not None:  # the free memory is cached for this process
        free = (recording.reserved - usage_of(recording).live).astype(np.float64)
        return {"held": recording.reserved, "free": free, "largest_free": pieces.largest_free}
    if reported is None:
        return {"largest_free": pieces.largest_free}
    nothing = np.full(recording.length, np.nan)
    return {
        "heap": reported.in_use,
        "stack": reported.reserved,
        "free": reported.free if recording.capacity else nothing,
        "largest_free": pieces.largest_free,
        "fragmentation": reported.fragmentation if pieces.reported else nothing,
    }


@endpoint("lifetimes", OUTLINE)
def lifetimes(recording: Recording) -> bytes:
    """Return the sizes, lifetimes and roles of the rows of api/rows, and the `unexplained` bytes at each position.

    Making and sending api/rows takes ten times as long. Columns with their usual values are left out.
    """
    rows = recording.allocations
    columns: dict[str, Column] = {
        "role": roles(recording),
        "charge": rows.charge,
        "start": narrow(rows.start),
        "end": narrow(rows.end),
    }
    if not np.array_equal(rows.size, rows.charge):
        columns["size"] = rows.size
    if not np.array_equal(rows.defined, rows.start):
        columns["defined"] = narrow(rows.defined)
    if not np.array_equal(rows.last_used, rows.end - 1):
        columns["last_used"] = narrow(rows.last_used)
    unexplained = _stretches(unexplained_bytes(recording))
    return encode({"positions": recording.length}, {"rows": columns, "unexplained": unexplained})


def _stretches(values: I64) -> Table:
    """Return the stretches start <= position < end of one value that is not zero."""
    bounds = np.r_[0, np.flatnonzero(np.diff(values)) + 1, len(values)] if len(values) else np.zeros(1, dtype=np.int64)
    start, end = bounds[:-1], bounds[1:]
    kept = values[start] != 0
    return {"start": narrow(start[kept]), "end": narrow(end[kept]), "bytes": values[start[kept]]}


MAX_HOLES = 200


class HoleJson(TypedDict):
    """A free piece of memory; `below` and `above` are the rows around it, null at a region's edge."""

    region: int
    offset: int
    size: int
    below: int | None
    above: int | None


class HolesJson(TypedDict):
    """The free pieces of memory at a position, largest first."""

    at: int
    holes: list[HoleJson]
    holes_total: int
    holes_bytes: int
    live_bytes: int
    unplaced_bytes: int
    """Live bytes without an address, which may lie in one of the holes."""
    largest_free: int | None
    fragmented: int | None
    told: bool
    """True if `largest_free` is the allocator's own figure; otherwise it is the largest hole."""


@endpoint("holes", OUTLINE, Integer("at", -1, last_position))
def holes(recording: Recording, position: int) -> HolesJson:
    """Return the holes at a position, largest first; -1 is before the first position.

    Where the allocator does not report its largest free block, it is the largest hole, or None while live rows without
    an address may lie in one of the holes.
    """
    found, rows = free_runs_at(recording, position), recording.allocations
    columns = (column[:MAX_HOLES].tolist() for column in found)
    pieces = fragmentation(recording)
    known = 0 <= position < recording.length
    return {
        "at": position,
        "holes": [
            {"region": region, "offset": offset, "size": size, "below": _row(below), "above": _row(above)}
            for region, offset, size, below, above in zip(*columns, strict=True)
        ],
        "holes_total": len(found.size),
        "holes_bytes": int(found.size.sum()),
        "live_bytes": int(rows.charge[rows.live_at(position)].sum()),
        "unplaced_bytes": unplaced_bytes(recording, position),
        "largest_free": _bytes(pieces.largest_free[position]) if known else None,
        "fragmented": _bytes(pieces.fragmented[position]) if known else None,
        "told": pieces.reported,
    }


def _row(row: int) -> int | None:
    return row if row >= 0 else None


def _bytes(value: float) -> int | None:
    return None if np.isnan(value) else int(value)
