"""Compiled programs in a profile, from its metadata plane."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tb_memplugin.readers.xplane.planes import Plane

METADATA_PLANE = "/host:metadata"
HLO_STAT = "hlo proto"  # "Hlo Proto"; libtpu 0.0.37 spells it "HLO Proto"
ID_STAT = "program_id"
PROGRAM_BYTES = 32 << 10  # a part and its recording, of a program with one instruction
NAME_AND_ID = re.compile(r"(.*)\((\d{1,20})\)", re.DOTALL)


def read_programs(plane: Plane) -> list[tuple[str, memoryview]]:
    """List the programs as (key, HloProto); a key is `name(program id)`. Raises ValueError on a damaged plane."""
    stats = plane.metadata["event_metadata.value.stats"]
    found = []
    rows = np.flatnonzero(stats["bytes_value"].length)
    plane.budget.charge(PROGRAM_BYTES * len(rows))
    for row in rows.tolist():
        if plane.stat_names.get(int(stats["metadata_id"][row]), "").lower() == HLO_STAT:
            start, length = int(stats["bytes_value"].start[row]), int(stats["bytes_value"].length[row])
            found.append((_key(plane, stats, int(stats["parent"][row])), plane.data[start : start + length]))
    return found


def _key(plane: Plane, stats: dict[str, Any], event: int) -> str:
    """Build the key from the program_id stat, else the number that ends the event's name, else the event's own id."""
    events = plane.metadata["event_metadata"]
    name = plane.text(events["value.name"], event)
    program_id = int(events["key"][event])
    if named := NAME_AND_ID.fullmatch(name):
        name, program_id = named[1], int(named[2])
    # Rows are in order of their events.
    for row in range(*np.searchsorted(stats["parent"], [event, event + 1]).tolist()):
        if plane.stat_names.get(int(stats["metadata_id"][row])) == ID_STAT:
            program_id = int(stats["uint64_value"][row]) or int(stats["int64_value"][row])
    return f"{name}({program_id % 2**64})"
