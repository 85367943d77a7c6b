"""Memory of the devices of a profile: the size in the planes of GPUs, the chip's name in those of TPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_memplugin.model.chips import Chip, chip_of_name
from tb_memplugin.readers.xplane.planes import Plane

PLANE = re.compile(r"/device:GPU:\d+")  # TPU planes have no such stat
STAT = "memory_size"
TPU_PLANE = re.compile(r"/device:TPU:\d+")
CHIP_STAT = "device_type_string"
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


def device_chip(planes: Sequence[Plane]) -> Chip | None:
    """Return the TPU of the profile's devices, the one with the least memory; None where no plane names a known one."""
    try:
        names = [name for plane in planes if TPU_PLANE.fullmatch(plane.name) for name in _chip_names(plane)]
    except ValueError:
        return None
    return min((chip for name in names if (chip := chip_of_name(name))), key=lambda chip: chip.hbm, default=None)


def _chip_names(plane: Plane) -> list[str]:
    """Return the plane's values of the stat with the chip's name; a value is a text, or refers to a stat's name."""
    stats = plane.metadata["stats"]
    wanted = [key for key, name in plane.stat_names.items() if name == CHIP_STAT]
    rows = np.flatnonzero(np.isin(stats["metadata_id"], wanted)).tolist()
    return [
        plane.text(stats["str_value"], row) or plane.stat_names.get(int(stats["ref_value"][row]), "") for row in rows
    ]
