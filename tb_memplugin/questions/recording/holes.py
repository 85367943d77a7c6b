"""The free pieces of memory at a position, and the rows around them."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from tb_memplugin.analysis import fragmentation
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import OUTLINE, Integer, last_position

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
    found, rows = fragmentation.holes(recording, position), recording.allocations
    columns = (column[:MAX_HOLES].tolist() for column in found)
    pieces = fragmentation.fragmentation(recording)
    known = 0 <= position < recording.length
    return {
        "at": position,
        "holes": [
            {"region": region, "offset": offset, "size": size, "below": _row(below), "above": _row(above)}
            for region, offset, size, below, above in zip(*columns, strict=True)
        ],
        "holes_total": len(found.size),
        "holes_bytes": int(found.size.sum()),
        "live_bytes": int(rows.charge[(rows.start <= position) & (position < rows.end)].sum()),
        "unplaced_bytes": fragmentation.unplaced_bytes(recording, position),
        "largest_free": _bytes(pieces.largest_free[position]) if known else None,
        "fragmented": _bytes(pieces.fragmented[position]) if known else None,
        "told": pieces.reported,
    }


def _row(row: int) -> int | None:
    return row if row >= 0 else None


def _bytes(value: float) -> int | None:
    return None if np.isnan(value) else int(value)
