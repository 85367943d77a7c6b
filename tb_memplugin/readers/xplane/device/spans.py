"""What ran on each TPU core, and when: the device's own account of the compiled programs that it executed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.xplane.all_events import every
from tb_memplugin.protos.xplane_pb2 import LineList, PlaneName
from tb_memplugin.readers.xplane.planes import Plane

PLANE = re.compile(r"/device:TPU:(\d+)")
LINE = "XLA Modules"
LINES = Plan(LineList.DESCRIPTOR)
NAME = Plan(PlaneName.DESCRIPTOR)


def cores(planes: Sequence[Plane]) -> dict[str, Plane]:
    """The planes of TPU cores, by the name that the core's memory has here."""
    found = ((PLANE.fullmatch(plane.name), plane) for plane in planes)
    return {f"TPU core {match[1]}": plane for match, plane in found if match}


def module_spans(plane: Plane, began_ns: int) -> NamedSpans:
    """Executions of compiled programs, named by their key, on the clock that begins at `began_ns` of the profile's.

    ValueError where the plane is damaged. Only the line of the modules is read: the others are most of the plane.
    """
    lines = scan(plane.data, LINES)["lines"]["value"]
    names = scan(plane.data, NAME, lines)[""]["name"]
    ours = [row for row in range(len(lines.start)) if plane.text(names, row) == LINE]
    kinds = {key: kind for kind, key in enumerate(plane.event_names)}
    found = every(plane.data, kinds, {}, lines.take(np.array(ours, dtype=np.int64)))
    begin = np.repeat(found["line_timestamp_ns"] - began_ns, found["line_events"])
    start = begin + found["offset_ps"] // 1000
    stop = begin + (found["offset_ps"] + found["duration_ps"]) // 1000
    order = np.flatnonzero(stop > start)
    order = order[np.argsort(start[order], kind="stable")]
    used, code = np.unique(found["kind"][order], return_inverse=True)  # most names are those of instructions
    texts = list(plane.event_names.values())
    return NamedSpans(
        Text(code.ravel().astype(np.int32), Strings.of([texts[kind] if kind >= 0 else "" for kind in used.tolist()])),
        np.full(len(order), int(SpanKind.EXECUTION), dtype=np.uint8),
        start[order],
        stop[order],
    )


def with_modules(host: NamedSpans, modules: NamedSpans) -> NamedSpans:
    """The host's spans and a device's executions; the host's calls, which only asked for those, are annotations."""
    if not len(modules):
        return host
    asked = np.where(host.kind == SpanKind.EXECUTION, int(SpanKind.ANNOTATION), host.kind)
    start = np.r_[host.start_ns, modules.start_ns]
    order = np.argsort(start, kind="stable")
    strings = Strings.joined(host.name.strings, modules.name.strings)
    codes = np.r_[host.name.codes, modules.name.codes + len(host.name.strings)].astype(np.int32)
    return NamedSpans(
        Text(codes[order], strings),
        np.r_[asked, modules.kind].astype(np.uint8)[order],
        start[order],
        np.r_[host.end_ns, modules.end_ns][order],
    )
