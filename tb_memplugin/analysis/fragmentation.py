"""Addresses of rows: the holes that fragment free memory, and buffers that use the same bytes."""

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import F64, I32, I64, U64, Mask
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.graph.free_runs import free_runs


class Addresses(NamedTuple):
    """Per row its region's number and its address, each with a mask of the known ones."""

    region: U64
    in_region: Mask
    address: U64
    addressed: Mask


def region_numbers(recording: Recording) -> U64:
    """Return each region's number: the index of a program's buffer allocation, else the region's start address."""
    # Addresses are stored as signed numbers; those in the upper half are negative.
    return recording.regions.index.astype(np.int64).view(np.uint64)


def addresses(recording: Recording, rows: I64) -> Addresses:
    """Return the regions and addresses of these rows. An allocator's row without an offset has an unknown region."""
    region, offset = recording.allocations.region[rows], recording.allocations.offset[rows]
    number, inside = np.zeros(len(region), dtype=np.uint64), region >= 0
    number[inside] = region_numbers(recording)[region[inside]]
    placed = inside & (offset >= 0)
    address = number + np.where(placed, offset, 0).astype(np.uint64)
    if recording.kind.has_addresses:
        return Addresses(number, placed, address, placed)
    return Addresses(number, inside, address, np.zeros(len(region), dtype=bool))


class Overlap(NamedTuple):
    """Rows whose bytes overlap a given row's, in order of use."""

    row: I64
    same_buffer: I64  # 1 for an alias of the same memory, 0 for a buffer that uses it at another time


def overlap(recording: Recording, row: int) -> Overlap:
    """Return the other rows whose bytes overlap those of `row`; none if its offset is unknown."""
    rows = recording.allocations
    region, offset = rows.region[row], rows.offset[row]
    overlaps = (
        (rows.region == region)
        & (rows.offset < offset + rows.size[row])
        & (offset < rows.offset + rows.size)
        & (np.arange(len(rows)) != row)
        & (region >= 0)
        & (offset >= 0)
    )
    others = np.flatnonzero(overlaps)
    others = others[np.argsort(rows.defined[others], kind="stable")]
    return Overlap(others, (rows.canonical[others] == rows.canonical[row]).astype(np.int64))


class Holes(NamedTuple):
    """Free runs of the known regions at one position, largest first."""

    region: I32
    offset: I64  # bytes from the start of the region
    size: I64
    below: I64  # the live row that ends where the hole begins, -1 where the region begins there
    above: I64  # the live row that begins where the hole ends, -1 where the region ends there


class Fragmentation(NamedTuple):
    """Bytes at each position of the axis; NaN if unknown."""

    largest_free: F64  # the largest free block
    fragmented: F64  # all other free bytes
    reported: bool  # by the allocator; otherwise computed from addresses, and the largest block may be larger


class _PlacedRows(NamedTuple):
    """Rows with known addresses, on one line of bytes that contains the regions one after the other."""

    row: I64
    low: I64
    high: I64
    edges: I64  # the start of each region, and the end of the last


def holes(recording: Recording, position: int) -> Holes:
    """Return the free runs between live rows at a position."""
    rows, placed = recording.allocations, _placed_rows(recording)
    live = rows.live_at(position)[placed.row]
    foreign = _never_used(recording, placed)
    row = np.r_[placed.row[live], np.full(len(foreign.low), -1)]
    gaps = _gaps(row, np.r_[placed.low[live], foreign.low], np.r_[placed.high[live], foreign.high], placed.edges)
    region = np.searchsorted(placed.edges, gaps.low, side="right") - 1
    begin, end = _region_lifetimes(recording)
    kept = (begin[region] <= position) & (position < end[region])
    found = np.flatnonzero(kept)[np.argsort(-(gaps.high - gaps.low)[kept], kind="stable")]
    region = region[found]
    return Holes(
        region=region.astype(np.int32),
        offset=gaps.low[found] - placed.edges[region],
        size=(gaps.high - gaps.low)[found],
        below=gaps.below[found],
        above=gaps.above[found],
    )


class _Gaps(NamedTuple):
    """Free runs on the line, within regions, and the rows on either side, -1 for a region's edge."""

    low: I64
    high: I64
    below: I64
    above: I64


def _gaps(row: I64, low: I64, high: I64, edges: I64) -> _Gaps:
    # Region edges bound gaps as rows do. Edges sort first, so a gap never crosses one.
    row = np.r_[np.full(len(edges), -1), row]
    low, high = np.r_[edges, low], np.r_[edges, high]
    order = np.lexsort((row >= 0, low))
    row, low, high = row[order], low[order], high[order]
    reach = np.maximum.accumulate(high)
    reaches = np.maximum.accumulate(np.where(high == reach, np.arange(len(row)), 0))
    found = np.flatnonzero(low[1:] > reach[:-1])
    return _Gaps(reach[found], low[found + 1], row[reaches[found]], row[found + 1])


def _never_used(recording: Recording, placed: _PlacedRows) -> _Gaps:
    """Return runs that no row ever used, if a region is only the range of observed addresses: others may use them."""
    gaps = _gaps(placed.row, placed.low, placed.high, placed.edges)
    return gaps if recording.reported is not None else _Gaps(*(column[:0] for column in gaps))


def unplaced_bytes(recording: Recording, position: int) -> int:
    """Return the live bytes with unknown addresses. They may lie in what looks like a hole."""
    rows = recording.allocations
    return int(rows.charge[rows.live_at(position) & (rows.offset < 0)].sum())


@memoize
def fragmentation(recording: Recording) -> Fragmentation:
    """Return the fragmentation that the allocator reports, else the one computed from its live blocks' addresses."""
    reported = recording.reported
    if reported is not None and recording.capacity and not np.isnan(reported.fragmentation).all():
        largest = reported.free * (1 - reported.fragmentation)
        return Fragmentation(np.round(largest), np.round(reported.free - largest), True)
    longest, total = _free_runs(recording)
    rows, n = recording.allocations, recording.length
    lost = (rows.offset < 0) & (rows.charge > 0) & (rows.start < rows.end)
    begun, ended = (np.bincount(np.clip(at[lost], 0, n), minlength=n + 1) for at in (rows.start, rows.end))
    known = (np.cumsum(begun - ended)[:n] == 0) & (recording.regions.size.sum() > 0)
    return Fragmentation(np.where(known, longest, np.nan), np.where(known, total - longest, np.nan), False)


def _placed_rows(recording: Recording) -> _PlacedRows:
    rows, size = recording.allocations, recording.regions.size
    edges = np.r_[0, np.cumsum(np.maximum(size, 0))].astype(np.int64)
    row = np.flatnonzero((rows.offset >= 0) & (rows.region >= 0))
    begin, end = edges[rows.region[row]], edges[rows.region[row] + 1]
    low = np.minimum(begin + rows.offset[row], end)
    high = np.minimum(low + rows.size[row], end)
    some = high > low  # in corrupt files, rows may lie outside of their region
    return _PlacedRows(row[some], low[some], high[some], edges)


def _region_lifetimes(recording: Recording) -> tuple[I64, I64]:
    """Return the first position of each region, and the position after its last."""
    regions, n = recording.regions, recording.length
    begin = np.full(len(regions), -1) if regions.start is None else regions.start
    return begin, np.full(len(regions), n) if regions.end is None else regions.end


def _free_runs(recording: Recording) -> tuple[I64, I64]:
    """Return the longest hole and the sum of all holes at each position."""
    rows, placed, n = recording.allocations, _placed_rows(recording), recording.length
    regions = len(placed.edges) - 1
    begin, end = _region_lifetimes(recording)
    foreign = _never_used(recording, placed)
    # One used byte between regions separates free memory at the end of one from that at the start of the next.
    low, high = placed.edges[:-1] + np.arange(regions), placed.edges[1:] + np.arange(regions)
    shift = rows.region[placed.row].astype(np.int64)
    moved = np.searchsorted(placed.edges, foreign.low, side="right") - 1
    # Used are the rows, that byte, each region before and after its lifetime, and the memory that may be of others.
    return free_runs(
        np.r_[rows.start[placed.row], np.full(2 * regions, -1), end, np.full(len(moved), -1)],
        np.r_[rows.end[placed.row], np.full(regions, n), begin, np.full(regions + len(moved), n)],
        np.r_[placed.low + shift, high, low, low, foreign.low + moved],
        np.r_[placed.high + shift, high + 1, high, high, foreign.high + moved],
        int(placed.edges[-1]) + regions,
        n,
    )
