"""Advice to shard state of which several devices have full copies: a mesh axis, and for each array a dimension.

If parameters are split along the axis that splits the batch, layers gather them before use. The compiler decides how
long they stay: at least for each use, at most from the first to the last. Splitting only the optimizer state is not
advised: compiled programs then keep copies of the parameters, and some need more memory than before.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, results_text, row_name, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import argument_parts, arguments, function_name
from tb_memplugin.analysis.dataflow.graph import DataflowGraph, copies, dataflow_graph, originals, row_of_value, uses
from tb_memplugin.analysis.dataflow.input_output_pairs import with_updated
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, training_step
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, always, combine, new_memory, resize_rows
from tb_memplugin.model.arrays import I64, Mask, dimensions
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import ArgumentShardings, Backend, MeshAxis
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text

UNNAMED = ""  # files before JAX 0.12 have no names of axes


class Shardable(NamedTuple):
    """Rows of arguments that one mesh axis can split further."""

    axis: MeshAxis
    rows: I64
    dimension: I64  # per row: the dimension to split, the largest that the axis divides

    def part(self, size: I64) -> I64:
        """Return the bytes of one part of arrays of these sizes."""
        return -(-size // self.axis.size)


def _shardable(recording: Recording, wanted: Sequence[Role]) -> list[Shardable]:
    """Return the arguments with one of these roles that each mesh axis can split, axes that split inputs first."""
    graph = dataflow_graph(recording)
    shardings = graph.program.shardings if graph is not None else None
    if graph is None or shardings is None:
        return []
    leaf_of_row = _leaves(recording, graph, shardings)
    by_axis: dict[MeshAxis, list[tuple[int, int]]] = {}
    for row in np.flatnonzero((leaf_of_row >= 0) & np.isin(roles(recording), wanted)).tolist():
        for axis in _free_axes(shardings, int(leaf_of_row[row])):
            if (dimension := _dimension_to_split(recording.allocations.shape[row], axis.size)) is not None:
                by_axis.setdefault(axis, []).append((row, dimension))
    splits = _axes_of_inputs(recording, shardings, leaf_of_row)
    ordered = sorted(by_axis.items(), key=lambda found: found[0].name not in splits)
    return [Shardable(axis, *np.array(found, dtype=np.int64).T) for axis, found in ordered]


def _free_axes(shardings: ArgumentShardings, leaf: int) -> tuple[MeshAxis, ...]:
    """Return the mesh axes along which devices have equal parts of a leaf, so that they could split it."""
    if (code := int(shardings.code[leaf])) >= 0:
        return shardings.named[code].free_axes
    copies = int(shardings.copies[leaf])
    return (MeshAxis(UNNAMED, copies),) if copies > 1 else ()


def _leaves(recording: Recording, graph: DataflowGraph, shardings: ArgumentShardings) -> I64:
    """Return the number of each row's leaf among the arguments, -1 for rows that are no arguments."""
    row = row_of_value(recording)
    found = np.full(len(recording.allocations), -1, dtype=np.int64)
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


CODE = """\
def shard(x):  # split the largest dimension that is whole and that the axis divides
    mesh, spec = x.sharding.mesh, [*x.sharding.spec, *[None] * x.ndim][: x.ndim]
    whole = [d for d in range(x.ndim) if spec[d] is None and x.shape[d] and x.shape[d] % mesh.shape[{axis}] == 0]
    if whole:
        spec[max(whole, key=lambda d: x.shape[d])] = {axis}
    return jax.device_put(x, NamedSharding(mesh, PartitionSpec(*spec)))

{names} = jax.tree.map(shard, {names})  # and out_shardings of {function}: their shardings"""


# A decoder whose columns were split, without constraints, needed 3.6 times as much as with constraints.
GATHERED = (
    " Each parameter is gathered where it is used, which takes time. Keep activations split along the batch with "
    "jax.lax.with_sharding_constraint, or XLA may gather the examples instead."
)


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all state that one mesh axis can split: the axis with the most bytes."""
    is_training = training_step(recording) is not None
    wanted = (Role.PARAMETER, Role.OPTIMIZER_STATE) if is_training else (Role.PARAMETER,)
    size = recording.allocations.size
    best = max(_shardable(recording, wanted), key=lambda on: int(size[on.rows].sum()), default=None)
    if best is not None and (piece := _advise_axis(recording, best)):
        yield piece


def _advise_axis(recording: Recording, split: Shardable) -> Advice | None:
    saved, names = _saving(recording, split), _names(recording, split.rows)
    if saved is None or not names:
        return None
    (axis, devices), size = split.axis, int(recording.allocations.size[split.rows].sum())
    of_axis = f"the mesh axis '{axis}'" if axis else f"{devices:,} devices"
    gathered = bool((roles(recording)[split.rows] == Role.PARAMETER).any())
    ordered = sort_by_size(recording, split.rows)
    dimension = dict(zip(split.rows.tolist(), split.dimension.tolist(), strict=True))[int(ordered[0])]
    cost = GATHERED if gathered else ""
    return Advice(
        kind=AdviceKind.REPLICATION,
        title=f"Shard {', '.join(names)} over {f'{axis!r}, ' if axis else ''}{devices:,} devices",
        sentence=f"Each device holds {bytes_text(size)} of {', '.join(names)} that {of_axis} can split"
        f"{results_text(recording, split.rows, with_updated(recording, split.rows))}. The largest is "
        f"{row_name(recording, int(ordered[0]))}, in dimension {dimension}. Sharding {agree(len(names), 'it', 'them')} "
        f"{saved.effect} per device.{cost}",
        change=CODE.format(
            axis=repr(axis) if axis else "axis",
            names=", ".join(names) if len(names) == 1 else f"({', '.join(names)})",
            function=function_name(recording),
        ),
        rows=ordered,
        bytes=size,
        saving=saved,
        edits=(f"shard:{axis or devices}:{','.join(names)}",),
    )


def _names(recording: Recording, rows: I64) -> list[str]:
    """Return the names of the arguments, or of their parts, whose bytes are mostly in these rows."""
    size, found = recording.allocations.size, list[str]()

    def is_most(of: I64) -> bool:
        return 2 * int(size[np.intersect1d(of, rows)].sum()) > int(size[of].sum())

    parts = list(argument_parts(recording))
    for argument in arguments(recording):
        inside = [part for part in parts if np.isin(part.rows, argument.rows).all()]
        if all(is_most(part.rows) for part in inside):
            found.append(argument.name)
        else:
            found += [part.name for part in inside if is_most(part.rows)]
    return found


def _saving(recording: Recording, split: Shardable) -> Saving | None:
    """Simulate sharding under the compiler's possible decisions.

    In compiled programs, gathered parameters stay from the first use to the last on GPU, and are gathered again for
    each use on TPU. While one is used, the next may be gathered. Gradients may be reduced to parts, and lookups in a
    table, and products by parts, gather nothing: six steps saved up to 1.5 times what is expected.
    """
    rows = with_updated(recording, split.rows)
    sharded, with_copies = (
        resize_rows(recording, of, split.part(recording.allocations.size[of]))
        for of in (rows, np.union1d(rows, _copies(recording, rows)).astype(np.int64))
    )
    used, kept = _gathered(recording, split)
    gradients = _gradients(recording, split)
    reduced = resize_rows(recording, gradients, split.part(recording.allocations.size[gradients]))
    next_one = always(recording, int(kept.bytes.max(initial=0)))
    return saving(
        recording,
        combine(with_copies, used if recording.backend is Backend.TPU else kept),
        combine(sharded, kept, next_one),
        combine(with_copies, used, reduced),
        combine(with_copies, reduced),
    )


def _copies(recording: Recording, rows: I64) -> I64:
    """Return the copies of these rows, such as those in the layout of the gradients, and what results are copies of."""
    graph, row, table = dataflow_graph(recording), row_of_value(recording), recording.allocations
    assert graph is not None
    source, target = (row[values] for values in copies(graph.values))
    is_copy = np.isin(source, rows) & (target >= 0) & (table.size[source] == table.size[target])
    return np.union1d(target[is_copy], originals(recording, rows)).astype(np.int64)


def _gathered(recording: Recording, split: Shardable) -> tuple[Change, Change]:
    """Return the changes by gathering each parameter at each read by both passes, and from first to last read."""
    (begin, read_at), needed = uses(recording), _passes_that_gather(recording)
    size, used, kept = recording.allocations.size, list[tuple[int, int, int]](), list[tuple[int, int, int]]()
    for row in split.rows[roles(recording)[split.rows] == Role.PARAMETER].tolist():
        at = read_at[begin[row] : begin[row + 1]]
        at = at[needed[at]]
        rest = int(size[row] - split.part(size[row]))
        used += [(position, position + 1, rest) for position in at.tolist()]
        kept += [(int(at.min()), int(at.max()) + 1, rest)] if len(at) else []
    return _change(used), _change(kept)


def _change(rows: list[tuple[int, int, int]]) -> Change:
    return new_memory(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def _passes_that_gather(recording: Recording) -> Mask:
    """Mark the positions that need whole parameters: the forward and backward passes. Updates need only parts."""
    step = training_step(recording)
    if step is None:
        return np.ones(recording.length, dtype=bool)
    return np.isin(step.phase[-recording.length :], (TrainingPhase.FORWARD, TrainingPhase.BACKWARD))


def _gradients(recording: Recording, split: Shardable) -> I64:
    """Return the rows of gradients of these parameters: those with as many elements."""
    graph, role = dataflow_graph(recording), roles(recording)
    assert graph is not None
    elements = graph.values.elements[graph.value]
    parameters = split.rows[role[split.rows] == Role.PARAMETER]
    is_gradient = (role == Role.GRADIENT) & (graph.value >= 0)
    return np.flatnonzero(is_gradient & np.isin(elements, elements[parameters]))
