"""Detection of the XLA backend that compiled a program."""

from __future__ import annotations

import numpy as np

from tb_memplugin.readers.hlo.module.tables import HloModule

# Each backend attaches its own configuration to some instructions. The CPU's is JSON with this first field, which the
# GPU's and the TPU's configurations lack.
CPU_CONFIG_PREFIX = b'{"outer_dimension_partitions":'
MAX_CONFIGS = 16  # configurations to check. One suffices, and a file may have thousands.


def is_cpu_program(module: HloModule) -> bool:
    """Return True for a program of XLA's CPU backend. Small programs may lack configurations and so return False."""
    configurations = module.instructions["backend_config"]
    starts = configurations.start[np.flatnonzero(configurations.length)[:MAX_CONFIGS]]
    return any(module.data[start : start + len(CPU_CONFIG_PREFIX)] == CPU_CONFIG_PREFIX for start in starts.tolist())
