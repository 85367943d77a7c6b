"""Planes of an XSpace, with the names of their events and stats, among them those of allocators."""

from __future__ import annotations

from typing import Any

import numpy as np

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

    @cached_property
    def metadata(self) -> dict[str, dict[str, Any]]:
        return scan(self.data, METADATA, budget=self.budget)

    @cached_property
    def event_names(self) -> dict[int, str]:
        """Event names by metadata id."""
        return self._names("event_metadata")

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
