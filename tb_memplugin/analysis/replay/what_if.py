"""The peak if some rows were smaller, had other lifetimes, or did not exist.

The size of a row is not its saving, because the peak moves elsewhere. So the live bytes are recomputed exactly, from
the recording's live bytes and a few changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.usage.live_bytes import Peak, usage
from tb_memplugin.model.arrays import I32, I64, Mask, concatenate_ranges, marked, sum_over_time
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.hlo.shared_bytes import union_over_time


class Change(NamedTuple):
    """Bytes added to the live bytes (removed if negative) at positions start <= p < end.

    `memory` is the row whose bytes they are (its canonical row), or -1 for bytes that are no row's.
    """

    start: I64
    end: I64
    bytes: I64
    memory: I32 | I64

    def take(self, which: Mask) -> Change:
        return Change._make(column[which] for column in self)


class RowLifetimes(NamedTuple):
    """Rows with the positions [start, end) at which they are needed, and their bytes. A row may occur several times."""

    row: I64
    start: I64
    end: I64
    bytes: I64

    def take(self, which: np.ndarray) -> RowLifetimes:
        return RowLifetimes._make(column[which] for column in self)


NO_ROWS = np.empty(0, dtype=np.int64)
NO_CHANGE = Change(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)
NO_LIFETIMES = RowLifetimes(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)


def combine(*parts: Change) -> Change:
    """Combine changes that are made together."""
    return Change(*(np.concatenate(columns) for columns in zip(NO_CHANGE, *parts, strict=True)))


def new_memory(start: I64, end: I64, size: I64) -> Change:
    """Return the change by further allocations."""
    return Change(start, end, size, np.full(len(size), -1))


def always(recording: Recording, size: int) -> Change:
    """Return the change by so many bytes throughout the program."""
    return new_memory(*(np.array([number]) for number in (-1, recording.length, size)))


def concatenate_lifetimes(*parts: RowLifetimes) -> RowLifetimes:
    return RowLifetimes(*(np.concatenate(columns) for columns in zip(NO_LIFETIMES, *parts, strict=True)))


def peak_after(recording: Recording, change: Change) -> Peak:
    """Return the peak with the change made, at its first position. O(positions + changes)."""
    needed_bytes = usage(recording).live
    n = len(needed_bytes)
    if not n:
        return Peak(0, 0)
    start, end = np.clip(change.start, 0, n), np.clip(change.end, 0, n)
    edges, at = np.unique(np.concatenate([[0], start, end]), return_inverse=True)
    step = np.zeros(len(edges), dtype=np.int64)
    np.add.at(step, at[1 : 1 + len(start)], change.bytes)
    np.add.at(step, at[1 + len(start) :], -change.bytes)
    inside = edges < n
    highest = np.maximum.reduceat(needed_bytes, edges[inside]) + np.cumsum(step)[inside]
    best = int(np.argmax(highest))
    first, last = int(edges[best]), int(edges[best + 1]) if best + 1 < len(edges) else n
    return Peak(int(highest[best]), first + int(np.argmax(needed_bytes[first:last])))


@memoize
def lifetimes(recording: Recording) -> RowLifetimes:
    """Return each row's own lifetime, in row order; in persistent memory this is shorter than the memory's lifetime."""
    rows = recording.allocations
    start = np.where(charged_for_region(recording), rows.defined, rows.start)
    end = np.minimum(rows.last_used + 1, np.where(charged_for_region(recording), recording.length, rows.end))
    return RowLifetimes(np.arange(len(rows)), start, np.maximum(end, start), rows.size)


@memoize
def charged_for_region(recording: Recording) -> Mask:
    """Mark the rows that are charged for a persistent region, one that lasts for the whole program."""
    return _in_persistent_region(recording) & (recording.allocations.charge > 0)


@memoize
def _rows_by_memory(recording: Recording) -> tuple[I64, I64]:
    """Return (order, begin): the rows that share memory with canonical row c are order[begin[c]:begin[c + 1]]."""
    canonical = recording.allocations.canonical.astype(np.int64)
    order = np.argsort(canonical, kind="stable")
    return order, np.searchsorted(canonical[order], np.arange(len(canonical) + 1))


def rows_sharing_memory(recording: Recording, rows: I64) -> I64:
    """Return all rows that share memory with these by aliasing: in-place updates, loop carries."""
    order, begin = _rows_by_memory(recording)
    shared = np.unique(recording.allocations.canonical[rows])
    found: I64 = order[concatenate_ranges(begin[shared], begin[shared + 1] - begin[shared])]
    return found


def remove_rows(recording: Recording, rows: I64) -> Change:
    """Return the change if these rows did not exist. Rows that share their memory keep it for their lifetimes."""
    return replace_lifetimes(recording, rows, NO_LIFETIMES)


def replace_lifetimes(recording: Recording, rows: I64, lifetimes_after: RowLifetimes) -> Change:
    """Return the change if these rows had other lifetimes.

    Rows in persistent memory save nothing (see shrink_regions); if they live longer, they need memory of their own.
    """
    table, own, is_persistent = recording.allocations, lifetimes(recording), _in_persistent_region(recording)
    sharing = rows_sharing_memory(recording, rows)
    sharing = sharing[~is_persistent[sharing]]
    stay = own.take(sharing[~np.isin(sharing, rows)])
    row, start = lifetimes_after.row, lifetimes_after.start
    longer = lifetimes_after._replace(start=np.where(is_persistent[row], np.maximum(start, own.end[row]), start))
    after = _charges(recording, concatenate_lifetimes(stay, longer.take(longer.end > longer.start)))
    charged = sharing[table.charge[sharing] > 0]
    before = Change(table.start[charged], table.end[charged], -table.charge[charged], table.canonical[charged])
    return combine(before, after)


def shrink_regions(recording: Recording, regions: I64, keep: I64 | int, removed: I64) -> Change:
    """Return the change if these persistent regions had only `keep` bytes each.

    The rows in `removed` need no memory. Other rows that used the regions and no longer fit need memory of their own.
    """
    table = recording.allocations
    limit = np.full(len(recording.regions), np.iinfo(np.int64).max)
    limit[regions] = keep
    carrier = np.flatnonzero(charged_for_region(recording) & (table.charge > limit[table.region]))
    begin, end = np.full(len(carrier), -1), np.full(len(carrier), recording.length)
    freed = Change(begin, end, limit[table.region[carrier]] - table.charge[carrier], table.canonical[carrier])
    guests = np.flatnonzero(table.offset + table.size > limit[table.region])
    guests = guests[~np.isin(guests, removed)]
    evicted = new_memory(*_charges(recording, lifetimes(recording).take(guests))[:3])
    return combine(freed, place_in_outputs(recording, evicted, limit))


def resize_rows(recording: Recording, rows: I64, size: I64) -> Change:
    """Return the change if these rows had other sizes. A persistent region shrinks with its argument or result."""
    table = recording.allocations
    given_or_returned = (table.defined[rows] < 0) | (table.last_used[rows] >= recording.length)
    whole = _in_persistent_region(recording)[rows] & (given_or_returned | charged_for_region(recording)[rows])
    regions = table.region[rows[whole]].astype(np.int64)
    kept = shrink_regions(recording, regions, size[whole], rows)
    own = lifetimes(recording).take(rows[~whole])
    return combine(kept, replace_lifetimes(recording, rows[~whole], own._replace(bytes=size[~whole])))


def place_in_outputs(recording: Recording, new: Change, limit: I64 | None = None) -> Change:
    """Return new allocations without the parts that compilers would place in idle memory of results.

    `limit` is the size of each region; a region that shrinks takes no new allocations.
    """
    kind, size = recording.regions.kind, recording.regions.size
    results = (kind & RegionKind.OUTPUT) != 0
    if limit is not None:
        results &= limit >= size
    if not results.any() or not len(new.bytes):
        return new
    tenants = results[recording.allocations.region]
    fitted = np.zeros(recording.length, dtype=np.int64)
    width = np.ceil(np.log2(np.maximum(new.bytes, 1))).astype(np.int64)
    for exponent in np.unique(width)[::-1].tolist():  # largest first
        of_width = width == exponent
        wide = results & (size >= int(new.bytes[of_width].max()))
        inside = np.flatnonzero(tenants & wide[recording.allocations.region])
        room = int(size[wide].sum()) - needed_bytes(recording, lifetimes(recording).take(inside)) - fitted
        need = sum_over_time(recording.length, new.start[of_width], new.end[of_width], new.bytes[of_width])
        fitted += np.clip(room, 0, need)
    at = np.flatnonzero(np.diff(fitted, prepend=0))
    return combine(new, new_memory(at, np.r_[at[1:], recording.length][: len(at)], -fitted[at]))


def needed_bytes(recording: Recording, wanted: RowLifetimes) -> I64:
    """Return the bytes at each position that these lifetimes need, without any other rows."""
    return sum_over_time(recording.length, *_charges(recording, wanted)[:3])


@memoize
def _in_persistent_region(recording: Recording) -> Mask:
    """Mark the rows in persistent regions."""
    region, kind = recording.allocations.region, recording.regions.kind
    if recording.program is None or not len(kind):
        return np.zeros(len(region), dtype=bool)
    lies_there: Mask = kind[region] != RegionKind.TEMPORARY
    return lies_there


@memoize
def _counts(recording: Recording) -> Mask:
    """Mark the rows that need memory: traces do not count pointer tables of tuples in temporary memory."""
    table = recording.allocations
    charged = marked(len(table), table.canonical[table.charge > 0])
    return charged[table.canonical] | _in_persistent_region(recording)


def _charges(recording: Recording, wanted: RowLifetimes) -> Change:
    """Return the charges of rows. Rows that share memory and live at once are charged for each byte once."""
    if not len(wanted.row):
        return NO_CHANGE
    table = recording.allocations
    shared, offset = table.canonical[wanted.row].astype(np.int64), table.offset[wanted.row]
    wanted = wanted._replace(bytes=np.where(_counts(recording)[wanted.row], wanted.bytes, 0))
    order = np.lexsort((wanted.end, wanted.start, shared))
    shared, offset, size = shared[order], offset[order], wanted.bytes[order]
    differs = (shared[1:] == shared[:-1]) & ((offset[1:] != offset[:-1]) | (size[1:] != size[:-1]))
    in_parts = np.isin(shared, shared[1:][differs])
    lives = wanted.take(order)
    if not in_parts.any():
        return _same_bytes(recording.length, shared, lives)
    return combine(
        _same_bytes(recording.length, shared[~in_parts], lives.take(~in_parts)),
        _union(shared[in_parts], offset[in_parts], lives.take(in_parts)),
    )


def _same_bytes(length: int, shared: I64, lives: RowLifetimes) -> Change:
    """Return the charges of rows sorted by memory and start. Rows of the same memory occupy the same bytes of it."""
    start, end = lives.start + 1, lives.end + 1  # from 0: -1 is before the program
    # Offsets keep the lifetimes of different memories apart, so that one running maximum serves all of them.
    apart = shared * (length + 2)
    covered = np.r_[0, np.maximum.accumulate(apart + end)[:-1]][: len(end)]
    begin = np.minimum(np.maximum(start, covered - apart), end)
    return Change(begin - 1, end - 1, lives.bytes, shared)


def _union(shared: I64, offset: I64, lives: RowLifetimes) -> Change:
    """Return the charges of rows that occupy different bytes of the memory that they share, such as slices of it."""
    n = len(shared)
    lifetime = np.tile(np.arange(n), 2)
    position, begins = np.r_[lives.start, lives.end], np.repeat(np.array([1, 0], dtype=np.int8), n)
    order = np.lexsort((-begins, position, shared[lifetime]))  # begins before ends: reused bytes stay live
    change = union_over_time(shared, offset, lives.bytes, lifetime[order], begins[order])
    at = position[order]
    return Change(at, np.full(len(at), np.iinfo(np.int64).max), change, shared[lifetime[order]])
