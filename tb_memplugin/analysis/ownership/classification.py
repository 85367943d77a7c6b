"""Classification of a recording's rows into forests, by model, source, function, role, shape or dtype.

A forest classifies all rows once. The bytes of the rows that are live at a position are then summed per node, here or
in the page.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.by_frame import by_function, by_source, by_stack
from tb_memplugin.analysis.ownership.by_model import by_model
from tb_memplugin.analysis.ownership.forest import Forest, ForestBuilder, weigh
from tb_memplugin.analysis.ownership.repeated_layers import merge_layers
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording

__all__ = ["Classification", "Forest", "forest", "weigh"]


class Classification(StrEnum):
    """The levels of a forest, from root to leaf."""

    MODEL = "model"  # pytree paths of arguments; pass, scopes and operation of everything else
    SOURCE = "source"  # Python frames, outermost first, without those of frameworks
    STACK = "stack"  # every frame
    FUNCTION = "function"  # jitted function, then its innermost Python line
    ROLE = "role"  # then shape
    SHAPE = "shape"
    DTYPE = "dtype"  # then shape


def forest(recording: Recording, by: Classification, merge: bool = False) -> Forest:
    """Return the forest of all rows, cached per recording. `merge` joins repeated layers; it only affects MODEL."""
    cached = _forests(recording)
    key = (by, merge and by is Classification.MODEL)
    if key not in cached:
        builder = ForestBuilder()
        leaf = BUILDERS[by](recording, builder)
        cached[key] = merge_layers(builder, leaf) if key[1] else builder.forest(leaf)
    return cached[key]


@memoize
def _forests(recording: Recording) -> dict[tuple[Classification, bool], Forest]:
    return {}


def _by_role(recording: Recording, builder: ForestBuilder) -> I32:
    rows, role = recording.allocations, roles(recording)
    names = [role.label for role in Role]
    return builder.rows([role, rows.shape.codes], lambda row: (names[role[row]], _shape(recording, row)))


def _by_shape(recording: Recording, builder: ForestBuilder) -> I32:
    return builder.rows([recording.allocations.shape.codes], lambda row: (_shape(recording, row),))


def _by_dtype(recording: Recording, builder: ForestBuilder) -> I32:
    rows = recording.allocations
    return builder.rows(
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
