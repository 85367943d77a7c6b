"""A memory profiler for TPU and GPU programs, as a plugin for TensorBoard and XProf and as a command-line tool."""

from typing import Any

__version__ = "0.1.0"


def load_ipython_extension(shell: Any) -> None:
    """Add `%memory` to a notebook, for `%load_ext tb_memplugin`."""
    from tb_memplugin.notebook import load

    load(shell)
