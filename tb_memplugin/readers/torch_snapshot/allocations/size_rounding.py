"""Rounding of sizes by PyTorch's caching allocator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tb_memplugin.model.arrays import I64

MIN_BLOCK_BYTES = 512  # kMinBlockSize: block sizes are multiples of it
MIB = 1 << 20
ROUNDED = "rounded"  # not PyTorch's: sizes are already those of blocks, or there are no blocks
BUCKETS = 16  # of the setting `roundup_power2_divisions`: 1 MiB, 2 MiB, ... 32 GiB


def round_sizes(size: I64, settings: Mapping[str, Any]) -> I64:
    """Round requested bytes up to block sizes, by the snapshot's allocator settings.

    `settings` has the divisions of `roundup_power2_divisions` under megabytes as text.
    """
    size = np.maximum(size, 0)
    if settings.get(ROUNDED):
        return size
    plain = np.maximum(-(-size // MIN_BLOCK_BYTES), 1) * MIN_BLOCK_BYTES
    divisions = np.array([_divisions(settings.get(str(1 << bucket))) for bucket in range(BUCKETS)])
    if not (divisions > 1).any():
        return plain
    power = np.floor(np.log2(np.maximum(size, 1))).astype(np.int64)
    parts = divisions[np.clip(power - 20, 0, BUCKETS - 1)]
    step = np.maximum((np.int64(1) << power) // np.maximum(parts, 1), 1)
    return np.where((parts > 1) & (size > MIN_BLOCK_BYTES * parts), -(-size // step) * step, plain)


def _divisions(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < MIB else 0
