"""Facts of a recording, its figures and largest arrays under stable names, and their match between two captures."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence, Set
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tb_memplugin.analysis.compare.stable_paths import (
    ARGUMENT,
    COMBINED,
    RowPaths,
    functions,
    map_texts,
    program_name,
    row_paths,
    short_shape,
    template,
)
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.model_paths import OF_JAX, argument_path, op_paths
from tb_memplugin.analysis.ownership.roles import roles, value_roles
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.changes import ArgumentFacts, ArrayFacts, FusedFacts, MemoryFacts
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.row_groups import group_rows

T = TypeVar("T")


def take_pairs(
    before: list[T], after: list[T], key: Callable[[T], Hashable], rank: Callable[[T, T], Any] = lambda old, new: 0
) -> list[tuple[T, T]]:
    """Pair items that have the same key, and take them out of both lists.

    If several items after have the key, the one with the lowest rank is the partner. Callers try an exact key first and
    then coarser ones, each on the items that are left.
    """
    waiting = defaultdict[Hashable, list[T]](list)
    for new in after:
        waiting[key(new)].append(new)
    pairs = []
    for old in list(before):
        if same := waiting[key(old)]:
            pairs.append((old, min(same, key=partial(rank, old))))
            before.remove(old)
            for items in (same, after):
                items.remove(pairs[-1][1])
    return pairs


MAX_FUSED = 60


def fused_facts(recording: Recording, rows: RowPaths, floor: int) -> tuple[FusedFacts, ...]:
    """Return the largest operations inside of fusions whose results no row stores. `rows` are the paths of rows."""
    program = recording.program
    if program is None or program.fused is None:
        return ()
    fused = program.fused()
    inside = np.flatnonzero(fused.position < recording.length)
    scopes, all_shapes = fused.op_name.take(inside), map_texts(fused.shape.take(inside), short_shape)
    # Names that differ only by numbers, such as names of layers, have one path, so only one of them is parsed.
    groups = group_rows([map_texts(scopes, template).codes, all_shapes.codes])
    count, total = (groups.sums(amount).tolist() for amount in (np.ones_like(inside), fused.size[inside]))
    position = fused.position[inside[groups.first]].tolist()
    names = [name.partition(COMBINED)[0] for name in scopes.take(groups.first).tolist()]
    paths = [template("/".join(part for part in path.parts if part not in OF_JAX)) for path in op_paths(names)]
    shapes = all_shapes.take(groups.first).tolist()
    stored = _stored(recording, rows, set(shapes))
    merged: dict[tuple[str, str], list[int]] = {}
    for path, shape, arrays, size, at in zip(paths, shapes, count, total, position, strict=True):
        if path and (path, shape) not in stored:
            found = merged.setdefault((path, shape), [at, 0, 0])
            found[1:] = [found[1] + arrays, found[2] + size]
    large = sorted(merged.items(), key=lambda found: (-found[1][2], found[0]))[:MAX_FUSED]
    return tuple(
        FusedFacts(path, shape, _unnumbered(program.name[at]), arrays, size)
        for (path, shape), (at, arrays, size) in large
        if size > floor
    )


def _unnumbered(name: str) -> str:
    """Return the name of an instruction without the compiler's numbers, which change with the whole program."""
    return name.partition(".")[0].rstrip("0123456789").rstrip("_") or name


def _stored(recording: Recording, rows: RowPaths, wanted: Set[str]) -> set[tuple[str, str]]:
    """Return (path template, shape) of all rows whose shape is one of `wanted`."""
    shapes = map_texts(recording.allocations.shape, short_shape)
    which = np.flatnonzero(shapes.isin(wanted))
    which = which[group_rows([rows.number[which], shapes.codes[which]]).first]
    return {
        (template(rows.paths[node]), shapes[row])
        for node, row in zip(rows.number[which].tolist(), which.tolist(), strict=True)
    }


# Groups of arrays below 1/FLOOR of the peak are left out. Of 32 changes of stored programs, 1/3000 gives six other
# figures of their causes, and 1/300 eight.
FLOOR = 1000
FORWARD, BACKWARD = "jvp(", "transpose("  # in JAX's names of operations
MAX_ROWS = 80  # rows of each list; the stored programs need at most 39, and have the same causes with 20
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
        roles_bytes={each.label: by_role[each] for each in Role if by_role[each]},
        devices=recording.program.devices if recording.program is not None else 1,
        floor_bytes=max(floor, arrays[len(kept)].bytes if len(arrays) > MAX_ROWS else 0),
        output_bytes=_output_bytes(recording) if is_program else None,
        microbatches=_microbatches(recording.program) if recording.program is not None else None,
        arguments=_arguments(recording, paths, role) if is_program else (),
        arrays=kept,
        saved=_saved(recording, paths, floor) if is_program else (),
        fused=fused_facts(recording, paths, floor) if is_program else (),
        elsewhere=_elsewhere(recording)[:MAX_ROWS] if is_program else (),
    )


def _output_bytes(recording: Recording) -> int:
    kind = recording.regions.kind
    alone = (kind & (RegionKind.OUTPUT | RegionKind.PARAMETER | RegionKind.THREAD_LOCAL)) == RegionKind.OUTPUT
    return int(recording.regions.size[alone].sum())


def _microbatches(program: Program) -> int:
    """Return how often the innermost loop runs that computes a gradient, its forward and its backward pass.

    JAX names the backward pass `transpose(`. The loop's own name lacks it, unlike those of scans over layers.
    """
    loops = program.loops() if program.loops is not None else {}
    outer = sorted((name for name in loops if BACKWARD not in name and FORWARD not in name), key=len, reverse=True)
    names = program.op_name.strings.texts(program.op_name.used) if outer else ()
    backward = [name for name in names if BACKWARD in name]
    return next((loops[loop] for loop in outer if any(name.startswith(f"{loop}/body/") for name in backward)), 1)


def _elsewhere(recording: Recording) -> tuple[str, ...]:
    graph = dataflow_graph(recording)
    if graph is None:
        return ()
    values = np.flatnonzero((graph.values.argument >= 0) & (row_of_value(recording) < 0))
    names = map(argument_path, set(graph.values.op_name.take(values).tolist()))
    return tuple(sorted({template("/".join(path)) for path in names if path}))


def _arrays(recording: Recording, paths: RowPaths, rows: I64, role: U8, size: I64) -> list[ArrayFacts]:
    """Return one row of facts for all rows of one path, role and shape, the largest first.

    A program's arrays without scopes get the function of the largest of them. In other recordings, arrays are grouped
    by function as well.
    """
    order = np.argsort(-size, kind="stable")
    rows, role, size = rows[order], role[order], size[order]
    shapes = map_texts(recording.allocations.shape.take(rows), short_shape)
    function, number = functions(recording).take(rows), paths.number[rows]
    nodes = zip(paths.paths, paths.roots, strict=True)
    alone = np.array([root != ARGUMENT and "/" not in path for path, root in nodes], dtype=bool)
    code = np.where(alone[number] & function.nonempty, function.codes, -1)
    groups = group_rows([number, *(() if recording.kind.has_program else (code,)), role, shapes.codes])
    named = np.full(len(groups.first), -1)
    has_function = np.flatnonzero(code >= 0)[::-1]
    named[groups.number[has_function]] = code[has_function]  # rows are reversed: the largest is assigned last
    counts, sums = groups.sums(recording.allocation_counts(rows)).tolist(), groups.sums(size).tolist()
    found = [
        ArrayFacts(
            paths.paths[number[row]],
            function.strings[name] if name >= 0 else "",
            Role(role[row]).label,
            shapes[row],
            arrays,
            paths.layers[number[row]],
            total,
        )
        for row, name, arrays, total in zip(groups.first.tolist(), named.tolist(), counts, sums, strict=True)
    ]
    return sorted(found, key=lambda array: (-array.bytes, array.path, array.function, array.role, array.shape))


def _saved(recording: Recording, paths: RowPaths, floor: int) -> tuple[ArrayFacts, ...]:
    """Return the activations that the forward pass saves. Activations that share memory count once."""
    table = recording.allocations
    rows = np.flatnonzero(value_roles(recording) == Role.ACTIVATION)
    _, first = np.unique(table.canonical[rows], return_index=True)
    rows = rows[first]
    role = np.full(len(rows), Role.ACTIVATION, dtype=np.uint8)
    found = _arrays(recording, paths, rows, role, table.size[rows])
    return tuple(array for array in found if array.bytes > floor)[:MAX_ROWS]


def _arguments(recording: Recording, paths: RowPaths, role: U8) -> tuple[ArgumentFacts, ...]:
    """Return the largest arguments, without FLOOR: a small batch of tokens decides the size of all other arrays."""
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
        kind = Role(int(role[rows[at]])).label
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


# Programs with different names count as one program if they share this part of their arguments. Stored programs that
# differ by one change share all, except where an optimizer gains a moment (0.75) or arguments are renamed (0.2).
SIMILAR = 0.8


class Matched(NamedTuple):
    """Pairs of facts, before and after, and those of one side."""

    pairs: list[tuple[MemoryFacts, MemoryFacts]]
    missing: list[MemoryFacts]
    added: list[MemoryFacts]


def identity(facts: MemoryFacts) -> tuple[str, str, str]:
    return facts.kind, program_name(facts.name), facts.memory  # older baselines have numbers of modules in names


def signature(facts: MemoryFacts) -> frozenset[tuple[str, str]]:
    """Return paths and shapes of the arguments, which distinguish programs of one name."""
    return frozenset((template(argument.path), argument.shape) for argument in facts.arguments)


def match(before: Sequence[MemoryFacts], after: Sequence[MemoryFacts]) -> Matched:
    """Pair the facts of two captures.

    Facts with equal kind, name and memory are paired: first those with equal arguments, then the others by size.
    Programs that remain are paired with the program of another name that is most similar.
    """
    missing, added = sorted(before, key=_size), sorted(after, key=_size)
    pairs = take_pairs(missing, added, lambda facts: (identity(facts), signature(facts)))
    pairs += take_pairs(missing, added, identity)
    for old in list(missing):
        similar = [(found, new) for new in added if (found := _similarity(old, new)) >= SIMILAR]
        if similar:
            new = max(similar, key=lambda found: found[0])[1]
            pairs.append((old, new))
            missing.remove(old)
            added.remove(new)
    return Matched(sorted(pairs, key=lambda pair: (identity(pair[1]), _size(pair[1]))), missing, added)


def _size(facts: MemoryFacts) -> tuple[int, str]:
    return -max(facts.peak_bytes, facts.reserved_bytes or 0), facts.name


def _similarity(a: MemoryFacts, b: MemoryFacts) -> float:
    """Return the share of arguments that two programs share, by path, or by role and shape where they were renamed.

    0 for other recordings.
    """
    if not a.kind.has_program or a.kind != b.kind or a.memory != b.memory or not a.arguments or not b.arguments:
        return 0.0
    paths, shapes = (
        [Counter(key(argument) for argument in facts.arguments) for facts in (a, b)]
        for key in (lambda argument: template(argument.path), lambda argument: (argument.role, argument.shape))
    )
    return max((one & other).total() / (one | other).total() for one, other in (paths, shapes))
