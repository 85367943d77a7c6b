"""What the page should show, from the API's tables alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hosts import Host
from logs import LARGEST, TRAIN
from servers import Server
from test_payload import decode
from viewer import Box

ROLES = (
    "unknown",
    "parameter",
    "optimizer state",
    "input",
    "gradient",
    "activation",
    "output",
    "constant",
    "temporary",
    "executable",
    "thread local",
)


@dataclass(frozen=True)
class Recording:
    meta: dict[str, Any]
    rows: dict[str, list[Any]]
    regions: dict[str, list[Any]]

    @property
    def length(self) -> int:
        return int(self.meta["axis"]["length"])

    @property
    def peak(self) -> int:
        return int(self.meta["peak"]["position"])

    def live(self, position: int) -> list[int]:
        """Rows that add to the live bytes at a position."""
        start, end, charge = self.rows["start"], self.rows["end"], self.rows["charge"]
        return [row for row in range(len(start)) if start[row] <= position < end[row] and charge[row] > 0]

    def bytes_of(self, rows: list[int]) -> int:
        return int(sum(self.rows["charge"][row] for row in rows))

    def temporaries_top(self) -> float:
        """Bytes of the timeline's whole y axis while only temporaries are shown."""
        bands = zip(self.regions["base"], self.regions["size"], self.regions["temporary"], strict=True)
        return float(max(base + size for base, size, temporary in bands if temporary))

    def middle(self, row: int) -> tuple[float, float]:
        """The middle of a row's block: position and byte."""
        rows = self.rows
        left = max(rows["defined"][row], 0)
        right = min(rows["last_used"][row] + 1, self.length)
        return (left + right) / 2, self.regions["base"][rows["region"][row]] + rows["offset"][row] + rows["size"][
            row
        ] / 2

    def alone(self) -> list[int]:
        """Rows with a block of temporary memory that no other covers in its middle, the largest first."""
        rows = self.rows
        drawn = [row for row in range(len(rows["size"])) if self.regions["temporary"][rows["region"][row]]]
        found = [row for row in drawn if [other for other in drawn if self._covers(other, *self.middle(row))] == [row]]
        area = [
            rows["size"][row] * (rows["last_used"][row] - rows["defined"][row] + 1) for row in range(len(rows["size"]))
        ]
        return sorted(found, key=lambda row: -area[row])

    def _covers(self, row: int, position: float, byte: float) -> bool:
        rows = self.rows
        bottom = self.regions["base"][rows["region"][row]] + rows["offset"][row]
        return (
            rows["defined"][row] <= position < rows["last_used"][row] + 1
            and bottom <= byte < bottom + rows["size"][row]
        )

    def point(self, row: int, plot: Box) -> tuple[float, float]:
        """Where the middle of a row's block is on the screen while the timeline shows all temporaries."""
        position, byte = self.middle(row)
        return plot.at(position / self.length, 1 - byte / self.temporaries_top())


def recording(host: Host, run: str = TRAIN, module: str = LARGEST) -> Recording:
    return recording_at(host.server, host.api, run, module)


def recording_at(server: Server, api: str, run: str, module: str, name: str = "localhost") -> Recording:
    asked = quote(f"{run}|{name}|{module}|HBM")
    meta, _ = decode(server.get(f"{api}memory_viewer?id={asked}").body)
    _, tables = decode(server.get(f"{api}rows?id={asked}").body)
    return Recording(meta, tables["rows"], tables["regions"])
