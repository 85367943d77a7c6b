"""The few figures that sum up a program's memory, each a number of bytes that means one thing."""

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
    """In the order in which they are read. None where the recording cannot tell."""
    top = peak(recording)
    held = reserved_bytes(recording)
    rows, regions = recording.allocations, recording.regions
    live = live_rows(recording, top.position)
    padding = int((rows.size[live] - rows.requested[live]).sum())
    temporary = regions.kind == RegionKind.TEMPORARY

    def of(kind: RegionKind) -> int:
        return int(regions.size[(regions.kind & kind) != 0].sum())

    live_temporary = int(rows.charge[live][temporary[rows.region[live]]].sum()) if len(live) else 0
    return [
        Figure("live_peak", "Live peak", top.bytes, "The most bytes that buffers need at one point of the program."),
        Figure(
            "reserved", "Reserved", held,
            "What the program asks the device for: the sum of its buffer allocations. This is what must fit.",
        ),
        Figure(
            "reported_peak", "JAX peak", recording.reported_peak,
            "JAX's definition of peak_memory_in_bytes, applied to this file, over all memory spaces. It knows of "
            "temporary buffers only what the compiler's traces tell; JAX itself often has no trace, and says less.",
        ),
        Figure(
            "arguments", "Arguments", of(RegionKind.PARAMETER),
            "The program's inputs, held from start to end. A donated argument is an output as well.",
        ),
        Figure("outputs", "Outputs", of(RegionKind.OUTPUT), "What the program returns; donated arguments included."),
        Figure(
            "temporaries", "Temporaries", int(regions.size[temporary].sum()),
            "Memory that the program shares out to intermediate results while it runs.",
        ),
        Figure("constants", "Constants", of(RegionKind.CONSTANT), "Values compiled into the program."),
        Figure(
            "padding", "Padding", padding,
            "Bytes at the peak that hold no data: buffers are rounded up to the tiles of their layout.",
        ),
        Figure(
            "fragmentation", "Fragmentation", int(regions.size[temporary].sum()) - live_temporary,
            "Temporary memory that is reserved but not live at the peak: holes that no buffer fits in.",
        ),
    ]  # fmt: skip


def share(part: int, whole: int) -> float:
    """part / whole, 0 of nothing."""
    return float(np.divide(part, whole)) if whole else 0.0
