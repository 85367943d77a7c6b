"""Small Recordings with literal numbers, for tests of analyses and views."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.kinds import Axis, RecordingKind, RegionKind, Role
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Allocations, Regions, Stacks
from tb_memplugin.model.text import Text


@dataclass(frozen=True)
class Row:
    """One allocation; its charge lasts for its own lifetime unless given."""

    size: int
    start: int
    end: int
    region: int = 0
    offset: int = 0
    charge: int | None = None
    requested: int | None = None
    role: Role = Role.TEMPORARY
    canonical: int | None = None
    name: str = "fusion"
    stack: int = -1
    defined: int | None = None
    last_used: int | None = None


def recording(
    rows: list[Row], length: int, regions: list[tuple[int, RegionKind]] | None = None, instructions: bool = True
) -> Recording:
    """Build a program of `length` instructions i0, i1, ... Regions: (size, kind), by default one temporary."""
    kinds = regions or [(sum(row.size for row in rows), RegionKind.TEMPORARY)]

    def column(values: list[int], dtype: type = np.int64) -> np.ndarray:
        return np.array(values, dtype=dtype)

    names = Text.of([f"i{p}" for p in range(length)])
    return Recording(
        kind=RecordingKind.PROGRAM,
        title="jit_f(1)",
        run="run",
        host="host",
        source="/logdir/host.xplane.pb",
        memory="HBM",
        axis=Axis.PROGRAM_ORDER,
        length=length,
        allocations=Allocations(
            id=column(list(range(len(rows)))),
            size=column([row.size for row in rows]),
            requested=column([row.size if row.requested is None else row.requested for row in rows]),
            charge=column([row.size if row.charge is None else row.charge for row in rows]),
            start=column([row.start for row in rows]),
            end=column([row.end for row in rows]),
            defined=column([row.start if row.defined is None else row.defined for row in rows]),
            last_used=column([row.end - 1 if row.last_used is None else row.last_used for row in rows]),
            region=column([row.region for row in rows], np.int32),
            offset=column([row.offset for row in rows]),
            canonical=column([i if r.canonical is None else r.canonical for i, r in enumerate(rows)], np.int32),
            role=column([int(row.role) for row in rows], np.uint8),
            stack=column([row.stack for row in rows], np.int32),
            name=Text.of([row.name for row in rows]),
            shape=Text.of(["f32[4]{0}"] * len(rows)),
            dtype=Text.of(["f32"] * len(rows)),
            op=Text.of(["fusion"] * len(rows)),
            op_name=Text.of([""] * len(rows)),
        ),
        regions=Regions(
            index=column(list(range(len(kinds)))),
            size=column([size for size, _ in kinds]),
            kind=column([int(kind) for _, kind in kinds], np.uint8),
        ),
        stacks=Stacks(
            parent=column([-1, 0], np.int32),
            function=Text.of(["main", "layer"]),
            file=Text.of(["train.py", "model.py"]),
            line=column([10, 20], np.int32),
        ),
        program=Program("jit_f", "main", 0, names, names, names, names, column([-1] * length, np.int32))
        if instructions
        else None,
        reported_peak=None,
    )
