"""Detection of the XLA backend that compiled a program."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.program import Backend
from tb_memplugin.readers.hlo.module.tables import CONFIGS, HloModule

# Each backend attaches its own configuration to some instructions: JSON, whose first field is the backend's own.
CONFIG_PREFIXES = {
    b'{"outer_dimension_partitions":': Backend.CPU,
    b'{"operation_queue_id":': Backend.GPU,
    b'{"flag_configs":': Backend.TPU,
}
LONGEST = max(map(len, CONFIG_PREFIXES))
MAX_CONFIGS = 16  # configurations to check. One suffices, and a file may have thousands.


def backend(module: HloModule) -> Backend:
    """Return the XLA backend that compiled a program. Small programs may lack configurations.

    Only TPU programs have layouts with tiles of two dimensions.
    """
    configurations = module.tables[CONFIGS]["value"]
    starts = configurations.start[np.flatnonzero(configurations.length)[:MAX_CONFIGS]]
    for start in starts.tolist():
        text = bytes(module.data[start : start + LONGEST])
        for prefix, made_by in CONFIG_PREFIXES.items():
            if text.startswith(prefix):
                return made_by
    shapes, _ = module.instruction_shapes
    tiled = any(len(tile) > 1 for shape in shapes.distinct for tile in shape.layout.tiles)
    return Backend.TPU if tiled else Backend.UNKNOWN
