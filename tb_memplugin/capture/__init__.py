"""Functions for training scripts and tests that record memory, such as `capture.snapshot("/tmp/xprof")`.

What a running job calls is imported here, without JAX and PyTorch: a job with no descriptor left can import nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tb_memplugin.capture.device_profiles import on_oom, snapshot, snapshot_every
from tb_memplugin.capture.live_arrays import track
from tb_memplugin.capture.torch_history import torch_memory
from tb_memplugin.capture.watching import Watch, watch

if TYPE_CHECKING:
    from tb_memplugin.capture.previews import preview
    from tb_memplugin.capture.programs import CompileOutOfMemory, assert_fits, compile, compiled, report
    from tb_memplugin.torch_fit.tracing import torch_preview

__all__ = [
    "CompileOutOfMemory",
    "Watch",
    "assert_fits",
    "compile",
    "compiled",
    "on_oom",
    "preview",
    "report",
    "snapshot",
    "snapshot_every",
    "torch_memory",
    "torch_preview",
    "track",
    "watch",
]


PREVIEWS = {"preview": "tb_memplugin.capture.previews", "torch_preview": "tb_memplugin.torch_fit.tracing"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = PREVIEWS.get(name, f"{__name__}.programs")
    return getattr(import_module(module), name)
