"""Names of the host's plane and of its allocator events."""

from __future__ import annotations

from tb_memplugin.readers.xplane.planes import Plane

PLANE = "/host:CPU"
ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"


def allocator_event_ids(plane: Plane) -> frozenset[int]:
    """Return the metadata ids of the plane's allocator events. Raises ValueError where the plane is damaged."""
    return frozenset(key for key, name in plane.event_names.items() if name in (ALLOCATION, DEALLOCATION))
