"""Planes of an XSpace, with the names of their events and stats, and the programs and devices that they name."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_memplugin.model.accelerators import Chip, Speed, chip_of_name, speed_of_gpu
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.protos.xplane_fields import LineList, PlaneList, PlaneMetadata, PlaneName
from tb_memplugin.readers.common.budget import ReadBudget

PLANES = Plan(PlaneList)
NAME = Plan(PlaneName)  # of a line, too
LINES = Plan(LineList)
METADATA = Plan(PlaneMetadata)
NAME_BYTES = 200  # of an entry of a dictionary, with its text
# A plane is an object with a cache and takes 20 microseconds. A host has about ten planes, and a file of a few bytes
# might list 400,000.
PLANE_BYTES = 64 << 10


class Plane:
    """An XPlane, parsed on first access; the properties raise ValueError where the bytes are no plane."""

    def __init__(self, data: memoryview, budget: ReadBudget | None = None) -> None:
        """`budget`: of the plane's file; None for a plane without a file."""
        self.data = data
        self.budget = budget or ReadBudget(data, "")

    @cached_property
    def name(self) -> str:
        return self.text(scan(self.data, NAME, budget=self.budget)[""]["name"], 0)

    @property
    def lines(self) -> Spans:
        """Spans of the plane's lines. Damage within them is not found."""
        lines: Spans = scan(self.data, LINES, budget=self.budget)["lines"]["value"]
        return lines

    def lines_named(self, wanted: str) -> Spans:
        """Return the spans of the lines with this name."""
        lines = self.lines
        names = scan(self.data, NAME, lines, self.budget)[""]["name"]
        return lines.take(np.flatnonzero([self.text(names, row) == wanted for row in range(len(lines.start))]))

    @cached_property
    def metadata(self) -> dict[str, dict[str, Any]]:
        return scan(self.data, METADATA, budget=self.budget)

    @cached_property
    def event_names(self) -> dict[int, str]:
        """Event names by metadata id."""
        return self._names("event_metadata")

    @property
    def event_kinds(self) -> dict[int, int]:
        """The number of each event name, in order of `event_names`, by metadata id."""
        return {key: kind for kind, key in enumerate(self.event_names)}

    @cached_property
    def stat_names(self) -> dict[int, str]:
        """Stat names by metadata id. A stat's value may also refer to one of these names."""
        return self._names("stat_metadata")

    def _names(self, table: str) -> dict[int, str]:
        rows = self.metadata[table]
        self.budget.charge(NAME_BYTES * len(rows["key"]) + int(rows["value.name"].length.sum()))
        return {key: self.text(rows["value.name"], row) for row, key in enumerate(rows["key"].tolist())}

    def rows_of_stat(self, name: str) -> list[int]:
        """Return the rows of the plane's own stats that have this name."""
        wanted = [key for key, known in self.stat_names.items() if known == name]
        return np.flatnonzero(np.isin(self.metadata["stats"]["metadata_id"], wanted)).tolist()

    def text(self, spans: Spans, row: int) -> str:
        return spans.text_at(self.data, row)


def read_planes(data: bytes | memoryview, budget: ReadBudget) -> list[Plane]:
    """List the planes of an XSpace. Raises ValueError where it has none."""
    view = memoryview(data)
    spans = scan(view, PLANES, budget=budget)["planes"]["value"]
    budget.charge(PLANE_BYTES * len(spans.start))
    planes = [Plane(view[s : s + n], budget) for s, n in zip(spans.start.tolist(), spans.length.tolist(), strict=True)]
    if not planes:
        raise ValueError("it contains no plane")
    return planes


HOST_PLANE = "/host:CPU"
ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"


def allocator_event_ids(plane: Plane) -> frozenset[int]:
    """Return the metadata ids of the plane's allocator events. Raises ValueError where the plane is damaged."""
    return frozenset(key for key, name in plane.event_names.items() if name in (ALLOCATION, DEALLOCATION))


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


GPU_PLANE = re.compile(r"/device:GPU:\d+")  # TPU planes have no such stat
MEMORY_STAT = "memory_size"
TPU_PLANE = re.compile(r"/device:TPU:\d+")
CHIP_STAT = "device_type_string"
CAPACITY_SOURCE = "the memory of the smallest device"


def device_memory_size(planes: Sequence[Plane]) -> int | None:
    """Return the bytes of the smallest device, since a program must fit on all; None where no plane has a size.

    A damaged plane counts as one without a size, so that the programs stay readable.
    """
    try:
        sizes = [_number(plane, MEMORY_STAT) for plane in planes if GPU_PLANE.fullmatch(plane.name)]
    except ValueError:
        return None
    return min((size for size in sizes if size > 0), default=None)


CAPABILITY_STATS = ("compute_cap_major", "compute_cap_minor")
RATE_STATS = ("core_count", "clock_rate", "memory_bandwidth")  # clock_rate: in kHz
VENDOR_STAT = "device_vendor"


def device_speed(planes: Sequence[Plane]) -> Speed | None:
    """Return what programs reach on the profile's NVIDIA GPU; None where there is none, or it is not known well."""
    try:
        for plane in planes:
            if GPU_PLANE.fullmatch(plane.name) and "AMD" not in _texts(plane, VENDOR_STAT):
                major, minor, cores, clock, memory = (_number(plane, name) for name in (*CAPABILITY_STATS, *RATE_STATS))
                if found := speed_of_gpu((major, minor), cores, 1e3 * clock, memory):
                    return found
    except ValueError:
        pass
    return None


def _number(plane: Plane, name: str) -> int:
    stats, rows = plane.metadata["stats"], plane.rows_of_stat(name)
    return max((int(stats["uint64_value"][row]) or int(stats["int64_value"][row]) for row in rows), default=0)


def _texts(plane: Plane, name: str) -> list[str]:
    """Return the plane's values of a stat of text, which is a text, or refers to a stat's name."""
    stats = plane.metadata["stats"]
    return [
        plane.text(stats["str_value"], row) or plane.stat_names.get(int(stats["ref_value"][row]), "")
        for row in plane.rows_of_stat(name)
    ]


def device_chip(planes: Sequence[Plane]) -> Chip | None:
    """Return the TPU of the profile's devices, the one with the least memory; None where no plane names a known one."""
    try:
        names = [name for plane in planes if TPU_PLANE.fullmatch(plane.name) for name in _texts(plane, CHIP_STAT)]
    except ValueError:
        return None
    return min((chip for name in names if (chip := chip_of_name(name))), key=lambda chip: chip.hbm, default=None)
