"""Functions for training scripts and tests that record memory, such as `capture.snapshot("/tmp/xprof")`.

Functions for JAX import only JAX, and functions for PyTorch only PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_memplugin.capture.device_profiles import on_oom, snapshot, snapshot_every
    from tb_memplugin.capture.live_arrays import track
    from tb_memplugin.capture.programs import CompileOutOfMemory, assert_fits, compile, compiled, report
    from tb_memplugin.capture.torch_history import torch_memory
    from tb_memplugin.capture.watching import Watch, watch

__all__ = [
    "CompileOutOfMemory",
    "Watch",
    "assert_fits",
    "compile",
    "compiled",
    "on_oom",
    "report",
    "snapshot",
    "snapshot_every",
    "torch_memory",
    "track",
    "watch",
]

_MODULES = {
    "CompileOutOfMemory": "programs",
    "assert_fits": "programs",
    "compile": "programs",
    "compiled": "programs",
    "on_oom": "device_profiles",
    "report": "programs",
    "snapshot": "device_profiles",
    "snapshot_every": "device_profiles",
    "torch_memory": "torch_history",
    "track": "live_arrays",
    "Watch": "watching",
    "watch": "watching",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
