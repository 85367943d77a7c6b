"""Compiling a step for accelerators that are not here, to find out whether it fits and what the largest batch is."""

from __future__ import annotations

from tb_memplugin.fit.api import compile, largest

__all__ = ["compile", "largest"]
