"""Threads of a real host, which generated hosts have beside their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tb_memplugin.protos.xplane_pb2 import XPlane, XSpace

REAL = Path(__file__).parents[2] / "demo_logdir/train_step/plugins/profile/cpu/localhost.xplane.pb"
PLANE = b"/host:CPU"
TIMESTAMP_NS = 4516  # of all lines


def number_names(names: Iterable[str], ids: dict[str, int], metadata: Any) -> None:
    """Add the names that the plane does not have yet."""
    for name in names:
        if name not in ids:
            ids[name] = max(ids.values(), default=0) + 1
            metadata[ids[name]].id, metadata[ids[name]].name = ids[name], name.encode()


def real_threads_plane() -> XPlane:
    """Return the threads of a real profile's runtime, without the thread that calls it."""
    space = XSpace.FromString(REAL.read_bytes())
    (plane,) = (plane for plane in space.planes if plane.name == PLANE)
    lines = [line for line in plane.lines if line.name != b"python"]
    real = XPlane(event_metadata=plane.event_metadata, stat_metadata=plane.stat_metadata, lines=lines)
    for number, line in enumerate(real.lines, 1):
        line.id, line.timestamp_ns = number, TIMESTAMP_NS
    return real
