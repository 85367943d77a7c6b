"""Compiling a step for accelerators that are not here, to find out whether it fits and what the largest batch is."""

from tb_memplugin.fit.api import compile, largest

__all__ = ["compile", "largest"]
