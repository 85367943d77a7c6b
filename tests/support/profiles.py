"""Real compiled programs for tests: those of demo_logdir/ and, where present, those of the shared data.

Protobuf's own parser extracts them from their profiles, so that no reader is tested against itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support import xprof_converter
from support.servers import DATA, DEMO

from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.protos.xplane_pb2 import XEventMetadata, XPlane, XSpace

DAMAGED = DATA / "xplane" / "xprof_tpu_inference_2"  # a damaged profile that tests must not read


@dataclass(frozen=True)
class Compiled:
    """A serialized HloProto, the logdir it is from, and its key in profiles and XProf."""

    profile: str
    title: str
    path: Path
    data: bytes

    def __str__(self) -> str:
        return f"{self.profile}-{self.title}"

    @property
    def proto(self) -> HloProto:
        return HloProto.FromString(self.data)


def profiles() -> list[Path]:
    """Return every readable profile, in a fixed order."""
    found = [path for root in (DEMO, DATA / "xplane") for path in sorted(root.glob("*/plugins/profile/*/*.xplane.pb"))]
    return [path for path in found if DAMAGED not in path.parents]


@cache
def compiled_programs() -> list[Compiled]:
    """Return every program of every profile, and every bare HloProto."""
    bare = [
        Compiled("hlo", path.name.removesuffix(".hlo_proto.pb"), path, path.read_bytes())
        for path in sorted((DATA / "hlo").glob("*.hlo_proto.pb"))
    ]
    return [*(program for path in profiles() for program in _programs(path)), *bare]


def _programs(path: Path) -> Iterator[Compiled]:
    for plane in XSpace.FromString(path.read_bytes()).planes:
        if plane.name == b"/host:metadata":
            for _, event in sorted(plane.event_metadata.items()):
                yield from _of_event(path, plane, event)


def _of_event(path: Path, plane: XPlane, event: XEventMetadata) -> Iterator[Compiled]:
    for stat in event.stats:
        if plane.stat_metadata[stat.metadata_id].name.lower() == b"hlo proto":
            # In these files, an event's name ends in its program's id.
            yield Compiled(path.parents[3].name, event.name.decode(), path, stat.bytes_value)


def answer_of_xprof(data: bytes, folder: Path, space: int = 0) -> dict[str, Any]:
    """Ask the installed XProf. Use a temporary folder, because XProf writes into the folder that it reads."""
    file = folder / f"module{xprof_converter.SUFFIX}"
    file.write_bytes(data)
    answer: dict[str, Any] = json.loads(xprof_converter.memory_viewer(file, space))
    return answer
