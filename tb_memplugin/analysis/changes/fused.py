"""Operations that fusions compute without writing the result to memory."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from tb_memplugin.analysis.changes.names import short_shapes, template
from tb_memplugin.analysis.changes.row_paths import COMBINED, OF_JAX, RowPaths
from tb_memplugin.analysis.ownership.model_paths import op_paths
from tb_memplugin.model.memory_facts import FusedFacts
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

MAX_FUSED = 60


def fused_facts(recording: Recording, rows: RowPaths, floor: int) -> tuple[FusedFacts, ...]:
    """Return the largest operations inside of fusions, without those that have a row too. `rows`: paths of rows."""
    program = recording.program
    if program is None or program.fused is None:
        return ()
    fused = program.fused()
    inside = np.flatnonzero(fused.position < recording.length)
    scopes, all_shapes = fused.scope.take(inside), short_shapes(fused.shape.take(inside))
    # Of names that differ by numbers, such as those of layers, one is parsed.
    templates = Text.of(scopes.map(template, "", np.object_).tolist())
    key = np.stack([templates.codes, all_shapes.codes])
    groups, first, which = np.unique(key, axis=1, return_index=True, return_inverse=True)
    count = np.bincount(which.ravel(), minlength=groups.shape[1]).tolist()
    total = np.bincount(which.ravel(), fused.size[inside], groups.shape[1]).astype(np.int64).tolist()
    position = fused.position[inside[first]].tolist()
    names = [name.partition(COMBINED)[0] for name in scopes.take(first).tolist()]
    paths = [template("/".join(part for part in path.parts if part not in OF_JAX)) for path in op_paths(names)]
    shapes = all_shapes.take(first).tolist()
    stored = _stored(recording, rows, set(shapes))
    merged: dict[tuple[str, str], list[int]] = {}
    for path, shape, arrays, size, at in zip(paths, shapes, count, total, position, strict=True):
        if path and (path, shape) not in stored:
            found = merged.setdefault((path, shape), [at, 0, 0])
            found[1:] = [found[1] + arrays, found[2] + size]
    large = sorted(merged.items(), key=lambda found: (-found[1][2], found[0]))[:MAX_FUSED]
    return tuple(
        FusedFacts(path, shape, program.name[at], arrays, size)
        for (path, shape), (at, arrays, size) in large
        if size > floor
    )


def _stored(recording: Recording, rows: RowPaths, wanted: Set[str]) -> set[tuple[str, str]]:
    """Return the templates and shapes of all rows of some shapes."""
    shapes = short_shapes(recording.allocations.shape)
    is_wanted = shapes.map(wanted.__contains__, False, np.bool_)
    pairs = np.unique(np.stack([rows.number, shapes.codes])[:, is_wanted], axis=1)
    return {(template(rows.paths[node]), shapes.strings[shape]) for node, shape in pairs.T.tolist()}
