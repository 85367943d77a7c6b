"""Regions and addresses of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64, U64, Mask
from tb_memplugin.model.recording import Recording


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


def regions_have_addresses(recording: Recording) -> bool:
    """Return True if the numbers of the recording's regions are addresses."""
    return recording.kind.has_addresses


def addresses(recording: Recording, rows: I64) -> Addresses:
    """Return the regions and addresses of these rows. An allocator's row without an offset has an unknown region."""
    region, offset = recording.allocations.region[rows], recording.allocations.offset[rows]
    number, inside = np.zeros(len(region), dtype=np.uint64), region >= 0
    number[inside] = region_numbers(recording)[region[inside]]
    placed = inside & (offset >= 0)
    address = number + np.where(placed, offset, 0).astype(np.uint64)
    if regions_have_addresses(recording):
        return Addresses(number, placed, address, placed)
    return Addresses(number, inside, address, np.zeros(len(region), dtype=bool))
