"""Over how many devices each argument of a partitioned program is repeated."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.readers.hlo.module import Lists, Module

SHARDINGS = "hlo_module.spmd_parameters_shardings"
MOST_DEVICES = 2**24  # more than anybody has; a damaged file may claim any number
REPLICATED, TILED = 0, 3  # of XLA's OpSharding; others put an array on one device, or leave it to the program


def copies_of(module: Module, devices: int) -> I32 | None:
    """Per leaf of the arguments: how many devices hold the same part of it. None where the file does not say."""
    table = module.tables[SHARDINGS]
    kind, rows = table["type"], len(table["type"])
    if not rows or devices < 2:
        return None
    tiles = Lists.of(module.tables[f"{SHARDINGS}.tile_assignment_dimensions"], rows)
    kinds = Lists.of(module.tables[f"{SHARDINGS}.last_tile_dims"], rows)
    copies = np.ones(rows, dtype=np.int64)
    copies[kind == REPLICATED] = devices
    for row in np.flatnonzero((kind == TILED) & (tiles.count() > 0)).tolist():
        extents = np.clip(tiles.values[tiles.begin[row] : tiles.begin[row + 1]], 1, devices).tolist()
        roles = kinds.values[kinds.begin[row] : kinds.begin[row + 1]].tolist()
        if table["replicate_on_last_tile_dim"][row]:
            copies[row] = extents[-1]
        for extent, role in zip(extents[::-1], roles[::-1], strict=False):
            copies[row] = min(copies[row] * extent, devices) if role == REPLICATED else copies[row]
    return np.clip(copies, 1, devices).astype(np.int32)


def devices_of(module: Module) -> int:
    """How many devices one program is cut up for; 1 where it is not."""
    counts = module.tables[""].get("hlo_module.device_assignment.computation_count")
    return min(max(int(counts[0]), 1), MOST_DEVICES) if counts is not None and len(counts) else 1
