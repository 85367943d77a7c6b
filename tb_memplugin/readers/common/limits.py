"""What no memory holds: a damaged file may claim any number of bytes, and the sums of a few would overflow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.caveats import Caveat

LARGEST = 2**50  # bytes, and things that are counted; no device has a PiB
LATEST = 2**52  # microseconds since 1970: in the year 2112, and in nanoseconds still 64 bits


def possible(column: I64) -> npt.NDArray[np.bool_]:
    """Whether each number of bytes, or change of them, can be."""
    return np.asarray((column >= -LARGEST) & (column <= LARGEST))


def impossible(count: int, what: str) -> list[Caveat]:
    """One caveat for so many of these, none for none. `what` ends in what becomes of them."""
    text = f"{count:,} {what}: damage, as no memory is that large."
    return [Caveat("impossible_bytes", text)] if count else []
