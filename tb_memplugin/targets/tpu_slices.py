"""Slices of TPUs: the sizes that exist, and the devices and the memory of each chip."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tb_memplugin.model.chips import MIB

Shape = tuple[int, ...]
PARTS_OF_HOST = ((1, 1, 1), (1, 1, 2))
SMALL_CUBES = ((1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
CUBE_EDGE = 4  # larger slices are made of cubes with 4 chips along each edge
SQUARES = ((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
LARGER_SQUARES = ((16, 32), (32, 32))
RECTANGLES = ((1, 1), (1, 2), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
# Slices to try from the smallest up: each has twice the chips of the one before.
CUBES = (
    *((1, 1, 1), (2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 4), (4, 4, 8), (4, 8, 8), (8, 8, 8)),
    *((8, 8, 16), (8, 16, 16), (16, 16, 16)),
)


class TpuKind(NamedTuple):
    """A TPU: the memory of a device, and the sizes of its slices. `flat` has those of two-dimensional ones."""

    capacity: int  # bytes that the smallest program may reserve
    devices_per_chip: int = 1
    flat: tuple[Shape, ...] = ()
    max_chips: int = 0
    options: tuple[tuple[str, str], ...] = ()  # of libtpu's topology

    def exists(self, shape: Shape) -> bool:
        """Return whether the size is offered, or is a part of a host. libtpu would compile for others as well."""
        edges = tuple(sorted(shape))
        if self.flat:
            return edges in self.flat
        cubes = len(edges) == 3 and all(edge % CUBE_EDGE == 0 and edge > 0 for edge in edges)
        return edges in (*PARTS_OF_HOST, *SMALL_CUBES) or (cubes and prod(edges) <= self.max_chips)

    @property
    def slices(self) -> tuple[Shape, ...]:
        """Return sizes to try, smallest first."""
        shapes = self.flat or CUBES
        return tuple(shape for shape in shapes if shape != (1, 2) and (self.flat or prod(shape) <= self.max_chips))


# Capacities are measured by compiling small programs with libtpu 0.0.52, to 1 KiB: each compiled at its capacity. They
# are 1.5 to 5.5 MiB below the figure in the compiler's errors, since code is in the same memory.
# Both cores of a v4 chip are one device, as on Cloud TPUs; libtpu makes them two without the option.
TPUS = {
    "v2": TpuKind(int(7660.5 * MIB), 2, flat=SQUARES),
    "v3": TpuKind(int(15852.5 * MIB), 2, flat=(*SQUARES, *LARGER_SQUARES)),
    "v4": TpuKind(int(31482.5 * MIB), max_chips=4096, options=(("chip_config_name", "megacore"),)),
    "v5e": TpuKind(int(16124.5 * MIB), flat=RECTANGLES),
    "v5p": TpuKind(int(98022.5 * MIB), max_chips=8960),
    "v6e": TpuKind(int(31990.5 * MIB), flat=RECTANGLES),
    "tpu7x": TpuKind(int(97010.5 * MIB), 2, max_chips=9216),
}
