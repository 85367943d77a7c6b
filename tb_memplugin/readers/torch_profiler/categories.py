"""The categories of PyTorch's memory profiler, in the order of their numbers in its files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import U8
from tb_memplugin.model.kinds import Role


class ProfilerCategory(NamedTuple):
    name: str
    role: Role


CATEGORIES = (
    ProfilerCategory("parameter", Role.PARAMETER),
    ProfilerCategory("optimizer state", Role.OPTIMIZER_STATE),
    ProfilerCategory("input", Role.INPUT),
    ProfilerCategory("temporary", Role.TEMPORARY),
    ProfilerCategory("activation", Role.ACTIVATION),
    ProfilerCategory("gradient", Role.GRADIENT),
    ProfilerCategory("autograd detail", Role.TEMPORARY),
    ProfilerCategory("unknown", Role.UNKNOWN),
)
UNKNOWN = len(CATEGORIES) - 1


def roles(category: np.ndarray) -> U8:
    """Return the roles of category numbers; UNKNOWN for numbers outside the list."""
    known = (category >= 0) & (category < len(CATEGORIES))
    role_of_category = np.array([category.role for category in CATEGORIES], dtype=np.uint8)
    return np.asarray(role_of_category[np.where(known, category, UNKNOWN)])
