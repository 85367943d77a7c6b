"""The figures that summarize a program's memory, in bytes."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.usage.figure_definitions import PROGRAM, Figure, define
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording


def figures(recording: Recording) -> list[Figure]:
    """Return the figures in display order; `bytes` is None if the recording does not contain the figure."""
    top = peak(recording)
    rows, regions = recording.allocations, recording.regions
    live = live_rows(recording, top.position)
    padding = int(np.minimum(rows.size[live] - rows.requested[live], rows.charge[live]).sum())
    temporary = regions.kind == RegionKind.TEMPORARY

    def region_bytes(kind: RegionKind) -> int:
        return int(regions.size[(regions.kind & kind) != 0].sum())

    in_region = live[rows.region[live] >= 0]  # rows of recordings without regions are in none
    live_temporary = int(rows.charge[in_region][temporary[rows.region[in_region]]].sum())
    reported = [define(PROGRAM, "reported_peak", recording.reported_peak)] if recording.is_main_memory else []
    return [
        define(PROGRAM, "live_peak", top.bytes),
        define(PROGRAM, "reserved", reserved_bytes(recording)),
        *reported,
        define(PROGRAM, "arguments", region_bytes(RegionKind.PARAMETER)),
        define(PROGRAM, "outputs", region_bytes(RegionKind.OUTPUT)),
        define(PROGRAM, "temporaries", int(regions.size[temporary].sum())),
        define(PROGRAM, "constants", region_bytes(RegionKind.CONSTANT)),
        define(PROGRAM, "padding", padding),
        define(PROGRAM, "fragmentation", int(regions.size[temporary].sum()) - live_temporary),
    ]  # fmt: skip


def share(part: int, whole: int) -> float:
    """Return part / whole, or 0 if `whole` is 0."""
    return float(np.divide(part, whole)) if whole else 0.0
