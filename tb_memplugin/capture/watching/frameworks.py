"""The frameworks whose devices the job has started.

Only they are asked: who asks JAX or PyTorch first starts their devices, and a job may have to configure them before.
"""

from __future__ import annotations

import sys
from typing import Any


def started_jax() -> Any | None:
    """Return JAX if the job has started its devices; else None."""
    jax, bridge = sys.modules.get("jax"), sys.modules.get("jax._src.xla_bridge")
    if jax is None or bridge is None:
        return None
    started = getattr(bridge, "backends_are_initialized", None)  # since 2023; there is no public function
    return jax if (started() if started is not None else getattr(bridge, "_backends", None)) else None


def started_torch() -> Any | None:
    """Return PyTorch if the job uses its GPUs; else None."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return torch if cuda is not None and cuda.is_initialized() else None
