"""Where rows lie: in which region, as the source calls it, and at which address."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64, U64, Mask
from tb_memplugin.model.recording import Recording


class Addresses(NamedTuple):
    """Per row the number of its region, and its address, each with whether it is known."""

    region: U64
    in_region: Mask
    address: U64
    addressed: Mask


def region_numbers(recording: Recording) -> U64:
    """Per region: the index of a program's buffer allocation, else the address at which it begins."""
    # Addresses are kept as signed numbers, those of the upper half below 0.
    return recording.regions.index.astype(np.int64).view(np.uint64)


def regions_have_addresses(recording: Recording) -> bool:
    """Whether the numbers of its regions are addresses."""
    return recording.kind.has_addresses


def addresses(recording: Recording, rows: I64) -> Addresses:
    """Of these rows. What has no offset may be in any of an allocator's regions."""
    region, offset = recording.allocations.region[rows], recording.allocations.offset[rows]
    number, inside = np.zeros(len(region), dtype=np.uint64), region >= 0
    number[inside] = region_numbers(recording)[region[inside]]
    placed = inside & (offset >= 0)
    address = number + np.where(placed, offset, 0).astype(np.uint64)
    if regions_have_addresses(recording):
        return Addresses(number, placed, address, placed)
    return Addresses(number, inside, address, np.zeros(len(region), dtype=bool))
