"""The figures that summarize a program's memory, in bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording


class Figure(NamedTuple):
    key: str
    label: str
    bytes: int | None
    text: str


def figures(recording: Recording) -> list[Figure]:
    """Return the figures in display order; `bytes` is None if the recording does not contain the figure."""
    top = peak(recording)
    rows, regions = recording.allocations, recording.regions
    live = live_rows(recording, top.position)
    padding = int((rows.size[live] - rows.requested[live]).sum())
    temporary = regions.kind == RegionKind.TEMPORARY

    def region_bytes(kind: RegionKind) -> int:
        return int(regions.size[(regions.kind & kind) != 0].sum())

    in_region = live[rows.region[live] >= 0]  # rows of recordings without regions are in none
    live_temporary = int(rows.charge[in_region][temporary[rows.region[in_region]]].sum())
    return [
        Figure("live_peak", "Live peak", top.bytes, "The most bytes that buffers need at any point of the program."),
        Figure(
            "reserved", "Reserved", reserved_bytes(recording),
            "The memory that the program requests from the device: the sum of its buffer allocations. This must fit.",
        ),
        Figure(
            "reported_peak", "JAX peak", recording.reported_peak,
            "peak_memory_in_bytes as JAX defines it, computed from this file over all memory spaces. Temporary buffers "
            "count only as far as the compiler's heap traces cover them; JAX itself often has no trace and reports "
            "less.",
        ),
        Figure(
            "arguments", "Arguments", region_bytes(RegionKind.PARAMETER),
            "The program's inputs, in memory from start to end. A donated argument also counts as an output.",
        ),
        Figure(
            "outputs", "Outputs", region_bytes(RegionKind.OUTPUT),
            "The program's results, including donated arguments.",
        ),
        Figure(
            "temporaries", "Temporaries", int(regions.size[temporary].sum()),
            "Memory that the program reserves for intermediate results while it runs.",
        ),
        Figure("constants", "Constants", region_bytes(RegionKind.CONSTANT), "Values compiled into the program."),
        Figure(
            "padding", "Padding", padding,
            "Bytes at the peak that hold no data, because buffers are rounded up to the tiles of their layout.",
        ),
        Figure(
            "fragmentation", "Fragmentation", int(regions.size[temporary].sum()) - live_temporary,
            "Temporary memory that is reserved but not live at the peak: gaps between buffers.",
        ),
    ]  # fmt: skip


def share(part: int, whole: int) -> float:
    """Return part / whole, or 0 if `whole` is 0."""
    return float(np.divide(part, whole)) if whole else 0.0
