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

_NAMES = {
    "device_profiles": ("on_oom", "snapshot", "snapshot_every"),
    "live_arrays": ("track",),
    "programs": ("CompileOutOfMemory", "assert_fits", "compile", "compiled", "report"),
    "torch_history": ("torch_memory",),
    "watching": ("Watch", "watch"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
