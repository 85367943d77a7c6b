"""<host>.xplane.pb: the programs that a profile carries."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.native.wire import Plan, scan
from tb_memplugin.protos.xplane_pb2 import PlaneList, PlaneMetadata, PlaneName
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.readers.part import Part

PLANES = Plan(PlaneList.DESCRIPTOR)
NAME = Plan(PlaneName.DESCRIPTOR)
METADATA = Plan(PlaneMetadata.DESCRIPTOR)

METADATA_PLANE = "/host:metadata"
HLO_STAT = "hlo proto"  # "Hlo Proto"; libtpu 0.0.37 spells it "HLO Proto"
ID_STAT = "program_id"
ID_IN_NAME = re.compile(r"\((\d+)\)$")

Columns = dict[str, Any]


def open_xplane(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[Part]:
    """The programs of a profile by their key, `jit_train_step(34)`. InputError where it is no profile.

    Of the planes, which are most of the file, only the one with the programs is opened.
    """
    try:
        programs = [program for plane in _metadata_planes(data) for program in _programs(plane)]
    except ValueError as error:
        raise InputError(
            f"not a profile, or a damaged one ({error})", path, "copy the file again, or profile again"
        ) from error
    parts: dict[str, Part] = {}
    for key, program in programs:
        # The format keys programs by an id of their own, so the same key twice is a broken writer's: keep both.
        title = key if key not in parts else f"{key}#{len(parts)}"
        read = partial(read_hlo, program, title=title, run=run, host=host, source=path)
        parts[title] = Part(title, "program", path, len(program), read)
    return list(parts.values())


def _metadata_planes(data: bytes | memoryview) -> list[memoryview]:
    view = memoryview(data)
    spans = scan(view, PLANES)["planes"]["value"]
    planes = [view[s : s + n] for s, n in zip(spans.start.tolist(), spans.length.tolist(), strict=True)]
    if not planes:
        raise ValueError("it holds no plane")
    return [plane for plane in planes if _text(plane, scan(plane, NAME)[""]["name"], 0) == METADATA_PLANE]


def _programs(plane: memoryview) -> list[tuple[str, memoryview]]:
    """(key, HloProto) of each event metadata that carries one."""
    tables = scan(plane, METADATA)
    stat_names, events, stats = tables["stat_metadata"], tables["event_metadata"], tables["event_metadata.value.stats"]
    names = {
        key: _text(plane, stat_names["value.name"], row).lower() for row, key in enumerate(stat_names["key"].tolist())
    }
    programs = []
    for row in np.flatnonzero(stats["bytes_value"].length).tolist():
        if names.get(int(stats["metadata_id"][row])) != HLO_STAT:
            continue
        event = int(stats["parent"][row])
        start, length = int(stats["bytes_value"].start[row]), int(stats["bytes_value"].length[row])
        programs.append((_key(plane, names, events, stats, event), plane[start : start + length]))
    return programs


def _key(plane: memoryview, names: dict[int, str], events: Columns, stats: Columns, event: int) -> str:
    """`name(program id)`. The id is a stat of its own, else the number that the name ends in, else the event's id."""
    name = _text(plane, events["value.name"], event)
    if ID_IN_NAME.search(name):
        return name
    for row in np.flatnonzero(stats["parent"] == event).tolist():
        if names.get(int(stats["metadata_id"][row])) == ID_STAT:
            return f"{name}({_unsigned(int(stats['uint64_value'][row]) or int(stats['int64_value'][row]))})"
    return f"{name}({_unsigned(int(events['key'][event]))})"


def _unsigned(number: int) -> int:
    return number % 2**64


def _text(data: memoryview, spans: Any, row: int) -> str:
    start, length = int(spans.start[row]), int(spans.length[row])
    return bytes(data[start : start + length]).decode("utf-8", "replace")
