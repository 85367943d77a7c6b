"""Replication of each argument over the devices of a partitioned program."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.readers.hlo.module.lists import Lists
from tb_memplugin.readers.hlo.module.tables import HloModule

SHARDINGS = "hlo_module.spmd_parameters_shardings"
MAX_DEVICES = 2**24  # a damaged file may contain any number
REPLICATED, TILED = (
    0,
    3,
)  # of XLA's OpSharding. The other types place an array on one device or leave it to the program.


def replica_counts(module: HloModule, devices: int) -> I32 | None:
    """Return, per leaf of the arguments, how many devices have the same shard of it; None where the file lacks this."""
    table = module.tables[SHARDINGS]
    kind, rows = table["type"], len(table["type"])
    if not rows or devices < 2:
        return None
    tiles = Lists.of(module.tables[f"{SHARDINGS}.tile_assignment_dimensions"], rows)
    kinds = Lists.of(module.tables[f"{SHARDINGS}.last_tile_dims"], rows)
    replicas = np.ones(rows, dtype=np.int64)
    replicas[kind == REPLICATED] = devices
    for row in np.flatnonzero((kind == TILED) & (tiles.count() > 0)).tolist():
        extents = np.clip(tiles.values[tiles.begin[row] : tiles.begin[row + 1]], 1, devices).tolist()
        roles = kinds.values[kinds.begin[row] : kinds.begin[row + 1]].tolist()
        if table["replicate_on_last_tile_dim"][row]:
            replicas[row] = extents[-1]
        for extent, role in zip(extents[::-1], roles[::-1], strict=False):
            replicas[row] = min(replicas[row] * extent, devices) if role == REPLICATED else replicas[row]
    return np.clip(replicas, 1, devices).astype(np.int32)


def device_count(module: HloModule) -> int:
    """Return the number of devices that a program is partitioned for; 1 where it is not."""
    counts = module.tables[""].get("hlo_module.device_assignment.computation_count")
    return min(max(int(counts[0]), 1), MAX_DEVICES) if counts is not None and len(counts) else 1
