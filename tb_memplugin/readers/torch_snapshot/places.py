"""Where allocations lie: in which segment, and how far into it."""

from __future__ import annotations

import numpy as np

from tb_memplugin.readers.torch_snapshot.lifetimes import Lives
from tb_memplugin.readers.torch_snapshot.segments import Segments
from tb_memplugin.readers.torch_snapshot.trace import Action, Trace
from tb_memplugin.recording import I32, I64, RegionKind, Regions

GIVEN = [Action.SEGMENT_ALLOC, Action.SEGMENT_FREE, Action.SEGMENT_MAP, Action.SEGMENT_UNMAP]


def places(trace: Trace, segments: Segments, lives: Lives) -> tuple[Regions, I32, I64]:
    """(every stretch of addresses that was ever a segment; the region of each life; its offset in it).

    Segments that took each other's place, or parts of one that were mapped one after the other, are one region. A
    life that lies in none has -1 for both.
    """
    told = np.isin(trace.action, GIVEN) & trace.known & (trace.size > 0)
    # As unsigned numbers: high addresses are negative in the columns.
    start = np.r_[segments.address, trace.address[told]].view(np.uint64)
    end = start + np.r_[segments.size, trace.size[told]].astype(np.uint64)
    mapped = np.r_[segments.expandable, np.isin(trace.action[told], GIVEN[2:])]
    order = np.argsort(start, kind="stable")
    start, end, mapped = start[order], end[order], mapped[order]
    reach = np.maximum.accumulate(end) if len(end) else end
    # A segment of its own begins where the one before has ended; mapped parts that touch go on.
    apart = start[1:] >= reach[:-1]
    touching = (start[1:] == reach[:-1]) & mapped[1:] & mapped[:-1]
    first = np.r_[True, apart & ~touching][: len(start)]
    base = start[first]
    number = np.cumsum(first) - 1
    size = np.zeros(len(base), dtype=np.uint64)
    np.maximum.at(size, number, end - base[number])
    regions = Regions(
        index=base.view(np.int64), size=size.astype(np.int64), kind=np.full(len(base), RegionKind.TEMPORARY, np.uint8)
    )
    address = lives.address.view(np.uint64)
    at = np.searchsorted(base, address, side="right") - 1
    inside = (at >= 0) & (address < (np.r_[base + size, np.uint64(0)])[at])
    offset = np.where(inside, address - np.r_[base, np.uint64(0)][at], np.uint64(0)).astype(np.int64)
    return regions, np.where(inside, at, -1).astype(np.int32), np.where(inside, offset, -1)
