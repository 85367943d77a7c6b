"""Where allocations lie: in which segment, and how far into it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.tables import Regions
from tb_memplugin.readers.common.pairing import pair
from tb_memplugin.readers.torch_snapshot.lifetimes import Lives
from tb_memplugin.readers.torch_snapshot.segments import Segments
from tb_memplugin.readers.torch_snapshot.trace import Action, Trace

U64 = npt.NDArray[np.uint64]
MAPS = [Action.SEGMENT_MAP, Action.SEGMENT_UNMAP]


class _Stretches(NamedTuple):
    """Memory that the device gave: addresses as unsigned numbers, held at events start <= p < end."""

    base: U64
    size: U64
    start: I64
    end: I64


def places(trace: Trace, segments: Segments, lives: Lives) -> tuple[Regions, I32, I64]:
    """(every segment that there was; the one of each life; its offset in it). A life that lies in none has -1 twice."""
    found = _sorted(_whole(trace, segments), _mapped(trace, segments))
    regions = Regions(
        index=found.base.view(np.int64),
        size=found.size.astype(np.int64),
        kind=np.full(len(found.base), RegionKind.TEMPORARY, np.uint8),
        start=found.start,
        end=found.end,
    )
    address = lives.address.view(np.uint64)
    # A moment at which the life's segment is there for certain.
    moment = np.where(lives.born >= 0, lives.born, np.where(lives.freed >= 0, lives.freed, max(len(trace) - 1, 0)))
    at = _at(found, address, moment)
    inside = at >= 0
    offset = np.where(inside, (address - np.r_[found.base, np.uint64(0)][at]).view(np.int64), -1)
    return regions, at.astype(np.int32), offset


def _sorted(one: _Stretches, other: _Stretches) -> _Stretches:
    """By base, then by start."""
    base, start = np.r_[one.base, other.base], np.r_[one.start, other.start]
    order = np.lexsort((start, base))
    size, end = np.r_[one.size, other.size], np.r_[one.end, other.end]
    return _Stretches(base[order], size[order], start[order], end[order])


def _whole(trace: Trace, segments: Segments) -> _Stretches:
    """Segments that come and go as they are."""
    gone = trace.action == Action.SEGMENT_FREE
    events = np.flatnonzero(((trace.action == Action.SEGMENT_ALLOC) | gone) & trace.known & (trace.size > 0))
    partner = pair(trace.address[events], gone[events], trace.known[events]).partner
    frees = gone[events]
    came, went = events[~frees], np.where(partner >= 0, np.r_[events, -1][partner], len(trace))[~frees]
    early = events[frees & (partner < 0)]
    kept = ~segments.expandable & ~np.isin(segments.address, trace.address[came][went == len(trace)])
    n = max(len(trace), 1)
    return _Stretches(
        np.r_[trace.address[came], trace.address[early], segments.address[kept]].view(np.uint64),
        np.r_[trace.size[came], trace.size[early], segments.size[kept]].astype(np.uint64),
        np.r_[came, np.full(len(early) + kept.sum(), -1)],
        np.r_[np.minimum(went, n), early, np.full(kept.sum(), n)],
    )


def _mapped(trace: Trace, segments: Segments) -> _Stretches:
    """Addresses that parts are mapped into one after the other: those that touch are one, and stay."""
    told = np.isin(trace.action, MAPS) & trace.known & (trace.size > 0)
    base = np.r_[segments.address[segments.expandable], trace.address[told]].view(np.uint64)
    end = base + np.r_[segments.size[segments.expandable], trace.size[told]].astype(np.uint64)
    order = np.argsort(base, kind="stable")
    base, end = base[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, base[1:] > reach[:-1]][: len(base)])
    last = np.r_[first[1:] - 1, len(base) - 1][: len(first)]
    count = len(first)
    return _Stretches(base[first], reach[last] - base[first], np.full(count, -1), np.full(count, max(len(trace), 1)))


def _at(found: _Stretches, address: U64, moment: I64) -> I64:
    """The stretch that holds each address at its moment, -1 where none does; stretches are by base, then by start."""
    at = np.full(len(address), -1)
    if not len(found.base):
        return at
    latest = np.searchsorted(found.base, address, side="right") - 1
    # Those that were at one address in turn stand side by side: nearly always the first look finds it, and a look for
    # each of them does.
    most = int(np.unique(found.base, return_counts=True)[1].max())
    for back in range(most):
        row = latest - back
        held = (row >= 0) & (at < 0)
        row = np.maximum(row, 0)
        held &= (address - found.base[row] < found.size[row]) & (address >= found.base[row])
        held &= (found.start[row] <= moment) & (moment <= found.end[row])
        at[held] = row[held]
        if (at >= 0).all():
            break
    return at
