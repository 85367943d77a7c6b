"""The content that the page should show, computed from the API's tables alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from support.browser.hosts import Host
from support.browser.logs import LARGEST, TRAIN
from support.browser.viewer import Box
from support.payload_decoder import decode
from support.servers import Server


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
        """Return the rows that add to the live bytes at a position."""
        start, end, charge = self.rows["start"], self.rows["end"], self.rows["charge"]
        return [row for row in range(len(start)) if start[row] <= position < end[row] and charge[row] > 0]

    def bytes_of(self, rows: list[int]) -> int:
        return int(sum(self.rows["charge"][row] for row in rows))

    def temporaries_top(self) -> float:
        """Return the height of the timeline's y axis in bytes while only temporaries are shown."""
        bands = zip(self.regions["base"], self.regions["size"], self.regions["temporary"], strict=True)
        return float(max(base + size for base, size, temporary in bands if temporary))

    def lifetime(self, row: int) -> tuple[int, int]:
        """Return the first position of a row's block and the one after its last."""
        return max(self.rows["defined"][row], 0), min(self.rows["last_used"][row] + 1, self.length)

    def bottom(self, row: int) -> float:
        """Return the lower edge of a row's block on the timeline's y axis, in bytes."""
        return float(self.regions["base"][self.rows["region"][row]] + self.rows["offset"][row])

    def middle(self, row: int) -> tuple[float, float]:
        """Return the middle of a row's block: position and byte."""
        start, end = self.lifetime(row)
        return (start + end) / 2, self.bottom(row) + self.rows["size"][row] / 2

    def temporaries(self) -> list[int]:
        """Return the rows in temporary memory."""
        return [row for row, region in enumerate(self.rows["region"]) if self.regions["temporary"][region]]

    def uncovered(self) -> list[int]:
        """Return the temporary rows whose block no other covers in its middle, the largest first."""
        rows = self.temporaries()
        found = [row for row in rows if [other for other in rows if self._covers(other, *self.middle(row))] == [row]]
        return sorted(found, key=self._area, reverse=True)

    def _area(self, row: int) -> float:
        start, end = self.lifetime(row)
        return float(self.rows["size"][row] * (end - start))

    def _covers(self, row: int, position: float, byte: float) -> bool:
        start, end = self.lifetime(row)
        bottom = self.bottom(row)
        return start <= position < end and bottom <= byte < bottom + float(self.rows["size"][row])

    def point(self, row: int, plot: Box) -> tuple[float, float]:
        """Return the middle of a row's block on the screen while the timeline shows all temporaries."""
        position, byte = self.middle(row)
        return plot.at(position / self.length, 1 - byte / self.temporaries_top())


def recording(host: Host, run: str = TRAIN, module: str = LARGEST) -> Recording:
    return recording_at(host.server, host.api, run, module)


def recording_at(server: Server, api: str, run: str, module: str, name: str = "localhost") -> Recording:
    identifier = quote(f"{run}|{name}|{module}|HBM")
    meta, _ = decode(server.get(f"{api}memory_viewer?id={identifier}").body)
    _, tables = decode(server.get(f"{api}rows?id={identifier}").body)
    return Recording(meta, tables["rows"], tables["regions"])
