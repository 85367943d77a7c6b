"""Facts of a recording: its figures, and what takes its memory, under names that stay the same between compiles."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.changes.fused import fused_facts
from tb_memplugin.analysis.changes.names import program_name, short_shape, short_shapes
from tb_memplugin.analysis.changes.row_paths import ARGUMENT, RowPaths, functions, row_paths
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.roles import roles, value_roles
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.memory_facts import ArgumentFacts, ArrayFacts, MemoryFacts
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording

FLOOR = 1000  # rows below this part of the peak are left out
MAX_ROWS = 80  # of each list
ROLES = {role: role.label for role in Role}
REPLICATED = "-"


@memoize
def facts(recording: Recording) -> MemoryFacts:
    """Return the facts of a recording. Lists contain the largest rows, by bytes and then by path."""
    top = peak(recording)
    rows = live_rows(recording, top.position)
    charge = recording.allocations.charge[rows]
    paths, role = row_paths(recording), roles(recording)
    floor = top.bytes // FLOOR
    arrays = _arrays(recording, paths, rows, role[rows], charge)
    kept = tuple(array for array in arrays if array.bytes > floor)[:MAX_ROWS]
    by_role = np.bincount(role[rows], charge, len(Role)).astype(np.int64).tolist()
    is_program = recording.kind.has_program
    unknown = recording.kind.is_torch and recording.reserved is None
    return MemoryFacts(
        kind=recording.kind,
        name=program_name(recording.title),
        memory=recording.memory,
        peak_bytes=top.bytes,
        reserved_bytes=None if unknown else reserved_bytes(recording),
        roles={ROLES[each]: by_role[each] for each in Role if by_role[each]},
        devices=recording.program.devices if recording.program is not None else 1,
        floor_bytes=max(floor, arrays[len(kept)].bytes if len(arrays) > MAX_ROWS else 0),
        arguments=_arguments(recording, paths, role) if is_program else (),
        arrays=kept,
        saved=_saved(recording, paths, floor) if is_program else (),
        fused=fused_facts(recording, paths, floor) if is_program else (),
    )


def _arrays(recording: Recording, paths: RowPaths, rows: I64, role: U8, size: I64) -> list[ArrayFacts]:
    """Group rows by path, role and shape, the largest first.

    A program's arrays without scopes have the function of the largest of them; those of other recordings are grouped
    by function too.
    """
    order = np.argsort(-size, kind="stable")
    rows, role, size = rows[order], role[order], size[order]
    shapes, function = short_shapes(recording.allocations.shape.take(rows)), functions(recording).take(rows)
    number, is_program = paths.number[rows], recording.kind.has_program
    nodes = zip(paths.paths, paths.roots, strict=True)
    alone = np.array([root != ARGUMENT and "/" not in path for path, root in nodes], dtype=bool)
    code = np.where(alone[number] & function.nonempty, function.codes, -1)
    key = np.stack([number, 0 * code if is_program else code, role.astype(np.int64), shapes.codes])
    groups, first, which = np.unique(key, axis=1, return_index=True, return_inverse=True)
    named = np.full(groups.shape[1], -1)
    has_function = np.flatnonzero(code >= 0)[::-1]
    named[which.ravel()[has_function]] = code[has_function]  # of the largest, which is assigned last
    counts = np.bincount(which.ravel(), recording.allocation_counts(rows), groups.shape[1]).astype(np.int64).tolist()
    sums = np.bincount(which.ravel(), size, groups.shape[1]).astype(np.int64).tolist()
    columns = zip(groups[0].tolist(), named.tolist(), groups[2].tolist(), first.tolist(), counts, sums, strict=True)
    found = [
        ArrayFacts(
            paths.paths[node],
            function.strings[name] if name >= 0 else "",
            ROLES[Role(kind)],
            shapes[at],
            arrays,
            paths.layers[node],
            total,
        )
        for node, name, kind, at, arrays, total in columns
    ]
    return sorted(found, key=lambda array: (-array.bytes, array.path, array.function, array.role, array.shape))


def _saved(recording: Recording, paths: RowPaths, floor: int) -> tuple[ArrayFacts, ...]:
    """Return the activations that the forward pass saves, one row for those that share memory."""
    table = recording.allocations
    rows = np.flatnonzero(value_roles(recording) == Role.ACTIVATION)
    _, first = np.unique(table.canonical[rows], return_index=True)
    rows = rows[first]
    role = np.full(len(rows), Role.ACTIVATION, dtype=np.uint8)
    found = _arrays(recording, paths, rows, role, table.size[rows])
    return tuple(array for array in found if array.bytes > floor)[:MAX_ROWS]


def _arguments(recording: Recording, paths: RowPaths, role: U8) -> tuple[ArgumentFacts, ...]:
    """Return the largest arguments, small ones too: a batch of tokens decides the size of everything else."""
    graph, program, row_of = dataflow_graph(recording), recording.program, row_of_value(recording)
    if graph is None or program is None:
        return ()
    values, table = graph.values, recording.allocations
    donors = set(values.donor[values.donor >= 0].tolist())
    found: dict[str, list[int]] = {}
    for value in np.flatnonzero((values.argument >= 0) & (row_of >= 0)).tolist():
        found.setdefault(paths.paths[int(paths.number[row_of[value]])], []).append(value)
    facts = []
    for path, of_path in found.items():
        rows = row_of[of_path]
        sizes = table.size[rows].tolist()
        at = max(range(len(sizes)), key=lambda i: sizes[i])
        leaves = values.argument[of_path].tolist()
        donated = sum(size for size, leaf in zip(sizes, leaves, strict=True) if leaf in donors)
        sharding, copies = _sharding(program, leaves[at])
        shape = short_shape(table.shape[int(rows[at])])
        kind = ROLES[Role(int(role[rows[at]]))]
        layers = paths.layers[int(paths.number[rows[at]])]
        facts.append(ArgumentFacts(path, kind, shape, len(sizes), sum(sizes), donated, sharding, copies, layers))
    return tuple(sorted(facts, key=lambda argument: (-argument.bytes, argument.path))[:MAX_ROWS])


def _sharding(program: Program, leaf: int) -> tuple[str, int]:
    """Return the axes that split each dimension of an argument, and the number of devices with the same part."""
    shardings = program.shardings
    if shardings is None or leaf >= len(shardings.copies):
        return "", 1
    code, copies = int(shardings.code[leaf]), int(shardings.copies[leaf])
    if code < 0:
        return "replicated" if copies == program.devices else "", copies
    axes = ["+".join(axis.name for axis in of) or REPLICATED for of in shardings.named[code].dimensions]
    return ",".join(axes) if any(axis != REPLICATED for axis in axes) else "replicated", copies
