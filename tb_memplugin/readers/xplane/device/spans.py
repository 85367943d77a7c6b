"""Executions of compiled programs on TPU cores, from the device's own planes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.source_tables import NamedSpans
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.protobuf.messages import scan
from tb_memplugin.native.xplane.all_events import every
from tb_memplugin.readers.xplane.planes import NAME, Plane

PLANE = re.compile(r"/device:TPU:(\d+)")
LINE = "XLA Modules"


def tpu_core_planes(planes: Sequence[Plane]) -> dict[str, Plane]:
    """Return the planes of TPU cores by the name of the core's memory, "TPU core 0"."""
    found = ((PLANE.fullmatch(plane.name), plane) for plane in planes)
    return {f"TPU core {match[1]}": plane for match, plane in found if match}


def module_spans(plane: Plane, start_ns: int) -> NamedSpans:
    """Return the executions of compiled programs, named by program key, in nanoseconds since `start_ns` of the profile.

    Only the "XLA Modules" line is read, as the other lines are most of the plane. Raises ValueError on a damaged plane.
    """
    lines = plane.lines
    names = scan(plane.data, NAME, lines, plane.budget)[""]["name"]
    module_lines = [row for row in range(len(lines.start)) if plane.text(names, row) == LINE]
    kinds = {key: kind for kind, key in enumerate(plane.event_names)}
    found = every(plane.data, kinds, {}, lines.take(np.array(module_lines, dtype=np.int64)), plane.budget)
    begin = np.repeat(found["line_timestamp_ns"] - start_ns, found["line_events"])
    start = begin + found["offset_ps"] // 1000
    stop = begin + (found["offset_ps"] + found["duration_ps"]) // 1000
    order = np.flatnonzero(stop > start)
    order = order[np.argsort(start[order], kind="stable")]
    used, code = np.unique(found["kind"][order], return_inverse=True)  # most names of the plane are of instructions
    texts = list(plane.event_names.values())
    return NamedSpans(
        Text(code.ravel().astype(np.int32), Strings.of([texts[kind] if kind >= 0 else "" for kind in used.tolist()])),
        np.full(len(order), int(SpanKind.EXECUTION), dtype=np.uint8),
        start[order],
        stop[order],
    )


def merge_spans(host: NamedSpans, modules: NamedSpans) -> NamedSpans:
    """Merge a device's executions into the host's spans, whose calls, being only launches, become annotations."""
    if not len(modules):
        return host
    host_kind = np.where(host.kind == SpanKind.EXECUTION, int(SpanKind.ANNOTATION), host.kind)
    start = np.r_[host.start_ns, modules.start_ns]
    order = np.argsort(start, kind="stable")
    strings = Strings.joined(host.name.strings, modules.name.strings)
    codes = np.r_[host.name.codes, modules.name.codes + len(host.name.strings)].astype(np.int32)
    return NamedSpans(
        Text(codes[order], strings),
        np.r_[host_kind, modules.kind].astype(np.uint8)[order],
        start[order],
        np.r_[host.end_ns, modules.end_ns][order],
    )
