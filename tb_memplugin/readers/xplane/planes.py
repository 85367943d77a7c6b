"""Planes of an XSpace, with the names of their events and stats."""

from __future__ import annotations

from typing import Any

from tb_memplugin.model.cached_property import cached_property
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

    def text(self, spans: Any, row: int) -> str:
        start, length = int(spans.start[row]), int(spans.length[row])
        return bytes(self.data[start : start + length]).decode("utf-8", "replace")


def read_planes(data: bytes | memoryview, budget: ReadBudget) -> list[Plane]:
    """List the planes of an XSpace. Raises ValueError where it has none."""
    view = memoryview(data)
    spans = scan(view, PLANES, budget=budget)["planes"]["value"]
    budget.charge(PLANE_BYTES * len(spans.start))
    planes = [Plane(view[s : s + n], budget) for s, n in zip(spans.start.tolist(), spans.length.tolist(), strict=True)]
    if not planes:
        raise ValueError("it contains no plane")
    return planes
