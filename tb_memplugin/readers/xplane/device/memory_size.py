"""Memory size of a device, from its plane."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_memplugin.readers.xplane.planes import Plane

PLANE = re.compile(r"/device:GPU:\d+")  # TPU planes have no such stat
STAT = "memory_size"
CAPACITY_SOURCE = "the memory of the smallest device"


def device_memory_size(planes: Sequence[Plane]) -> int | None:
    """Return the bytes of the smallest device, since a program must fit on all; None where no plane has a size.

    A damaged plane counts as one without a size, so that the programs stay readable.
    """
    try:
        sizes = [size for plane in planes if PLANE.fullmatch(plane.name) for size in _sizes(plane)]
    except ValueError:
        return None
    return min((size for size in sizes if size > 0), default=None)


def _sizes(plane: Plane) -> list[int]:
    stats = plane.metadata["stats"]
    wanted = [key for key, name in plane.stat_names.items() if name == STAT]
    rows = np.flatnonzero(np.isin(stats["metadata_id"], wanted))
    sizes: list[int] = np.maximum(stats["uint64_value"][rows], stats["int64_value"][rows]).astype(np.int64).tolist()
    return sizes
