"""What PyTorch's caching allocator makes of a size before it looks for a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tb_memplugin.model.arrays import I64

LEAST = 512  # bytes; every block of a device is a multiple of it
MIB = 1 << 20
ROUNDED = "rounded"  # a setting of our own: sizes are those of blocks, or there are no blocks
BUCKETS = 16  # of the setting `roundup_power2_divisions`: 1 MiB, 2 MiB, ... 32 GiB


def rounded(size: I64, settings: Mapping[str, Any]) -> I64:
    """Bytes rounded as the settings of the snapshot say; `settings` holds divisions by megabytes, as text."""
    size = np.maximum(size, 0)
    if settings.get(ROUNDED):
        return size
    plain = np.maximum(-(-size // LEAST), 1) * LEAST
    divisions = np.array([_positive(settings.get(str(1 << bucket))) for bucket in range(BUCKETS)])
    if not (divisions > 1).any():
        return plain
    power = np.floor(np.log2(np.maximum(size, 1))).astype(np.int64)
    parts = divisions[np.clip(power - 20, 0, BUCKETS - 1)]
    step = np.maximum((np.int64(1) << power) // np.maximum(parts, 1), 1)
    return np.where((parts > 1) & (size > LEAST * parts), -(-size // step) * step, plain)


def _positive(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < MIB else 0
