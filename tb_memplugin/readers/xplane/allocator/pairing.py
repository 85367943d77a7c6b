"""Which free ends which allocation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64


class Pairs(NamedTuple):
    """Per event, in order of time: for an allocation the event that ends it, for a free the one that it ends.

    -1 where there is none. An allocation at an address that is taken ends the one before it: `taken` counts those.
    """

    partner: I64
    taken: int


def pair(address: I64, frees: npt.NDArray[np.bool_], known: npt.NDArray[np.bool_]) -> Pairs:
    """A free ends the latest allocation at its address. Events whose address is not known stay alone."""
    events = np.flatnonzero(known)
    order = events[np.argsort(address[events], kind="stable")]  # by address, then by time
    here, after = order[:-1], order[1:]
    together = (address[here] == address[after]) & ~frees[here]
    partner = np.full(len(address), -1, dtype=np.int64)
    partner[here[together]] = after[together]
    ended = together & frees[after]
    partner[after[ended]] = here[ended]
    return Pairs(partner, int((together & ~frees[after]).sum()))
