"""Pairs of allocations and frees, by address."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64


class Pairs(NamedTuple):
    """Partners of events ordered by time: for an allocation the event that ends it, for a free its allocation.

    -1 is no partner. An allocation at an address in use ends the earlier one there; `address_taken` counts those.
    """

    partner: I64
    address_taken: int


def pair(address: I64, frees: npt.NDArray[np.bool_], known: npt.NDArray[np.bool_]) -> Pairs:
    """Pair each free with the latest allocation at its address. Events without a `known` address have no partner."""
    events = np.flatnonzero(known)
    order = events[np.argsort(address[events], kind="stable")]  # by address, then by time
    here, after = order[:-1], order[1:]
    together = (address[here] == address[after]) & ~frees[here]
    partner = np.full(len(address), -1, dtype=np.int64)
    partner[here[together]] = after[together]
    ended = together & frees[after]
    partner[after[ended]] = here[ended]
    return Pairs(partner, int((together & ~frees[after]).sum()))
