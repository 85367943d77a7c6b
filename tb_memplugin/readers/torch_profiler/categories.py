"""The categories of PyTorch's memory profiler, in the order of their numbers in its files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import U8
from tb_memplugin.model.kinds import Role


class Category(NamedTuple):
    name: str
    role: Role


CATEGORIES = (
    Category("parameter", Role.PARAMETER),
    Category("optimizer state", Role.OPTIMIZER_STATE),
    Category("input", Role.INPUT),
    Category("temporary", Role.TEMPORARY),
    Category("activation", Role.ACTIVATION),
    Category("gradient", Role.GRADIENT),
    Category("autograd detail", Role.TEMPORARY),
    Category("unknown", Role.UNKNOWN),
)
UNKNOWN = len(CATEGORIES) - 1


def roles(category: np.ndarray) -> U8:
    """What a number outside the list means, nobody knows."""
    known = (category >= 0) & (category < len(CATEGORIES))
    of = np.array([category.role for category in CATEGORIES], dtype=np.uint8)
    return np.asarray(of[np.where(known, category, UNKNOWN)])
