"""Whose memory it is: every row of a recording in a forest, by model, source, function, role, shape or dtype.

A forest classifies all rows once. What is live at a moment is then weighed in it, here or in the page.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from tb_memplugin.analysis.memoize import once
from tb_memplugin.analysis.ownership.by_frame import by_function, by_source, by_stack
from tb_memplugin.analysis.ownership.by_model import by_model
from tb_memplugin.analysis.ownership.forest import Forest, Grower, merge_layers, weigh
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording

__all__ = ["By", "Forest", "forest", "weigh"]


class By(StrEnum):
    MODEL = "model"  # pytree paths of arguments; pass, scopes and operation of everything else
    SOURCE = "source"  # Python frames, outermost first, without those of frameworks
    STACK = "stack"  # every frame
    FUNCTION = "function"  # jitted function, then its innermost Python line
    ROLE = "role"  # then shape
    SHAPE = "shape"
    DTYPE = "dtype"  # then shape


def forest(recording: Recording, by: By, merge: bool = False) -> Forest:
    """Remembered per recording. `merge`: layers that repeat are one node, in model paths; nothing else repeats so."""
    known = _forests(recording)
    key = (by, merge and by is By.MODEL)
    if key not in known:
        grower = Grower()
        leaf = GROWERS[by](recording, grower)
        known[key] = merge_layers(grower, leaf) if key[1] else grower.forest(leaf)
    return known[key]


@once
def _forests(recording: Recording) -> dict[tuple[By, bool], Forest]:
    return {}


def _by_role(recording: Recording, grower: Grower) -> I32:
    rows, role = recording.allocations, roles(recording)
    names = [role.name.lower().replace("_", " ") for role in Role]
    return grower.rows([role, rows.shape.codes], lambda row: (names[role[row]], _shape(recording, row)))


def _by_shape(recording: Recording, grower: Grower) -> I32:
    return grower.rows([recording.allocations.shape.codes], lambda row: (_shape(recording, row),))


def _by_dtype(recording: Recording, grower: Grower) -> I32:
    rows = recording.allocations
    return grower.rows(
        [rows.dtype.codes, rows.shape.codes], lambda row: (rows.dtype[row] or "unknown dtype", _shape(recording, row))
    )


def _shape(recording: Recording, row: int) -> str:
    return recording.allocations.shape[row] or "unknown shape"


GROWERS: dict[By, Callable[[Recording, Grower], I32]] = {
    By.MODEL: by_model,
    By.SOURCE: by_source,
    By.STACK: by_stack,
    By.FUNCTION: by_function,
    By.ROLE: _by_role,
    By.SHAPE: _by_shape,
    By.DTYPE: _by_dtype,
}
