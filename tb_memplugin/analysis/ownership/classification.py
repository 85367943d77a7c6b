"""Whose memory it is: every row of a recording in a forest, by model, source, function, role, shape or dtype.

A forest classifies all rows once. What is live at a moment is then weighed in it, here or in the page.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.by_frame import by_function, by_source, by_stack
from tb_memplugin.analysis.ownership.by_model import by_model
from tb_memplugin.analysis.ownership.forest import Forest, ForestBuilder, merge_layers, weigh
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording

__all__ = ["Classification", "Forest", "forest", "weigh"]


class Classification(StrEnum):
    MODEL = "model"  # pytree paths of arguments; pass, scopes and operation of everything else
    SOURCE = "source"  # Python frames, outermost first, without those of frameworks
    STACK = "stack"  # every frame
    FUNCTION = "function"  # jitted function, then its innermost Python line
    ROLE = "role"  # then shape
    SHAPE = "shape"
    DTYPE = "dtype"  # then shape


def forest(recording: Recording, by: Classification, merge: bool = False) -> Forest:
    """Remembered per recording. `merge`: layers that repeat are one node, in model paths; nothing else repeats so."""
    known = _forests(recording)
    key = (by, merge and by is Classification.MODEL)
    if key not in known:
        grower = ForestBuilder()
        leaf = BUILDERS[by](recording, grower)
        known[key] = merge_layers(grower, leaf) if key[1] else grower.forest(leaf)
    return known[key]


@memoize
def _forests(recording: Recording) -> dict[tuple[Classification, bool], Forest]:
    return {}


def _by_role(recording: Recording, grower: ForestBuilder) -> I32:
    rows, role = recording.allocations, roles(recording)
    names = [role.name.lower().replace("_", " ") for role in Role]
    return grower.rows([role, rows.shape.codes], lambda row: (names[role[row]], _shape(recording, row)))


def _by_shape(recording: Recording, grower: ForestBuilder) -> I32:
    return grower.rows([recording.allocations.shape.codes], lambda row: (_shape(recording, row),))


def _by_dtype(recording: Recording, grower: ForestBuilder) -> I32:
    rows = recording.allocations
    return grower.rows(
        [rows.dtype.codes, rows.shape.codes], lambda row: (rows.dtype[row] or "unknown dtype", _shape(recording, row))
    )


def _shape(recording: Recording, row: int) -> str:
    return recording.allocations.shape[row] or "unknown shape"


BUILDERS: dict[Classification, Callable[[Recording, ForestBuilder], I32]] = {
    Classification.MODEL: by_model,
    Classification.SOURCE: by_source,
    Classification.STACK: by_stack,
    Classification.FUNCTION: by_function,
    Classification.ROLE: _by_role,
    Classification.SHAPE: _by_shape,
    Classification.DTYPE: _by_dtype,
}
