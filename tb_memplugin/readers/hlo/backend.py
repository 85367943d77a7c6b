"""Which compiler made a program, as far as it says so."""

from __future__ import annotations

import numpy as np

from tb_memplugin.readers.hlo.module import Module

# Each backend writes a configuration of its own at the instructions that it plans work for. The CPU's is JSON with
# all of its fields, of which this one comes first; those of GPU and TPU have no such field.
OF_CPU = b'{"outer_dimension_partitions":'
LOOKED_AT = 16  # configurations; one tells, and a file may be full of others


def for_cpu(module: Module) -> bool:
    """Whether the CPU's compiler made it; a program too small to be planned for does not tell."""
    configurations = module.instructions["backend_config"]
    begins = configurations.start[np.flatnonzero(configurations.length)[:LOOKED_AT]]
    return any(module.data[start : start + len(OF_CPU)] == OF_CPU for start in begins.tolist())
