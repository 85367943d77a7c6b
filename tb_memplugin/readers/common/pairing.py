"""Pairs of allocations and frees, by address."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.native.graph.pairing import partners


class Pairs(NamedTuple):
    """Partners of events ordered by time: for an allocation the event that ends it, for a free its allocation.

    -1 is no partner. An allocation at an address in use ends the earlier one there; `address_taken` counts those.
    """

    partner: I64
    address_taken: int


def pair(address: I64, frees: Mask, known: Mask) -> Pairs:
    """Pair each free with the latest allocation at its address. Events without a `known` address have no partner."""
    return Pairs(*partners(np.ascontiguousarray(address), frees.view(np.uint8), known.view(np.uint8)))
