"""How much memory a device has, as its own plane says."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_memplugin.readers.xplane.planes import Plane

PLANE = re.compile(r"/device:GPU:\d+")  # TPU's planes do not say
STAT = "memory_size"
SOURCE = "the memory of the smallest device"


def device_memory(planes: Sequence[Plane]) -> int | None:
    """Bytes of the smallest device, which a program must fit; None where no device says.

    What a damaged plane would have said is unknown too: it costs the programs nothing else.
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
