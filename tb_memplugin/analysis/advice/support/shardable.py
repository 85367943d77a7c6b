"""Arguments that several devices hold in full, and the mesh axis and the dimension that could split each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import ArgumentShardings, MeshAxis
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.shapes import dimensions

UNNAMED = ""  # files before JAX 0.12 have no names of axes


class Shardable(NamedTuple):
    """Rows of arguments that one mesh axis can split further."""

    axis: MeshAxis
    rows: I64
    dimension: I64  # per row: the dimension to split, the largest that the axis divides

    def part(self, size: I64) -> I64:
        """Return the bytes of one part of these many."""
        return -(-size // self.axis.size)


@memoize
def shardable(recording: Recording) -> list[Shardable]:
    """Return the arguments that each mesh axis can split, the axes that split the program's inputs first."""
    program, graph = recording.program, dataflow_graph(recording)
    if program is None or graph is None or program.shardings is None:
        return []
    leaf_of_row = _leaves(recording, program.shardings)
    by_axis: dict[MeshAxis, list[tuple[int, int]]] = {}
    for row in np.flatnonzero(leaf_of_row >= 0).tolist():
        for axis in free_axes(program.shardings, int(leaf_of_row[row])):
            if (dimension := _dimension_to_split(recording.allocations.shape[row], axis.size)) is not None:
                by_axis.setdefault(axis, []).append((row, dimension))
    splits = _axes_of_inputs(recording, program.shardings, leaf_of_row)
    ordered = sorted(by_axis.items(), key=lambda found: found[0].name not in splits)
    return [Shardable(axis, *np.array(found, dtype=np.int64).T) for axis, found in ordered]


def free_axes(shardings: ArgumentShardings, leaf: int) -> tuple[MeshAxis, ...]:
    """Return the axes along which devices have the same part of a leaf."""
    if (code := int(shardings.code[leaf])) >= 0:
        return shardings.named[code].free_axes
    copies = int(shardings.copies[leaf])
    return (MeshAxis(UNNAMED, copies),) if copies > 1 else ()


def _leaves(recording: Recording, shardings: ArgumentShardings) -> I64:
    """Return the number of each row's leaf among the arguments, -1 for rows that are no arguments."""
    graph, row = dataflow_graph(recording), row_of_value(recording)
    found = np.full(len(recording.allocations), -1, dtype=np.int64)
    assert graph is not None
    given = np.flatnonzero((graph.values.argument >= 0) & (row >= 0))
    # A program whose arguments are one tuple has one sharding for all of them.
    if graph.values.argument.max(initial=-1) < len(shardings.copies):
        found[row[given]] = graph.values.argument[given]
    return found


def _axes_of_inputs(recording: Recording, shardings: ArgumentShardings, leaf_of_row: I64) -> set[str]:
    """Return the axes that split inputs, such as the batch."""
    inputs = leaf_of_row[(roles(recording) == Role.INPUT) & (leaf_of_row >= 0)]
    codes = {int(code) for code in shardings.code[inputs] if code >= 0}
    return {axis.name for code in codes for axes in shardings.named[code].dimensions for axis in axes} | {UNNAMED}


def _dimension_to_split(shape: str, parts: int) -> int | None:
    """Return the largest dimension of a shape such as `f32[8,128]` that can be split evenly; None without one."""
    sizes = dimensions(shape)
    return max((d for d, size in enumerate(sizes) if size and size % parts == 0), key=lambda d: sizes[d], default=None)


def parts_by_role(recording: Recording, which: Shardable, *wanted: Role) -> Shardable:
    """Return the rows with one of these roles."""
    keep = np.isin(roles(recording)[which.rows], wanted)
    return which._replace(rows=which.rows[keep], dimension=which.dimension[keep])


def each_axis(recording: Recording, *wanted: Role) -> Iterator[Shardable]:
    """Yield the rows with one of these roles that each axis can split; axes without such rows are left out."""
    for found in shardable(recording):
        if len((of_role := parts_by_role(recording, found, *wanted)).rows):
            yield of_role
