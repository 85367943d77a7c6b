"""Advice to shard state that several devices hold in full.

Split along the axis that splits the batch, parameters are gathered where layers use them. The compiler decides for how
long: at least for each use, at most from the first to the last. Splitting the optimizer state without the parameters
is not advised: compiled programs then keep copies of the parameters, and some need more memory than before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, row_name, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import argument_parts, arguments, function_name
from tb_memplugin.analysis.advice.support.shardable import Shardable, each_axis
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value, uses
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, training_step
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, resize_rows
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.dataflow import Derivation
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text

CODE = """\
def shard(x):  # split the largest dimension that is whole and that the axis divides
    mesh, spec = x.sharding.mesh, [*x.sharding.spec, *[None] * x.ndim][: x.ndim]
    whole = [d for d in range(x.ndim) if spec[d] is None and x.shape[d] and x.shape[d] % mesh.shape[{axis}] == 0]
    if whole:
        spec[max(whole, key=lambda d: x.shape[d])] = {axis}
    return jax.device_put(x, NamedSharding(mesh, PartitionSpec(*spec)))

{names} = jax.tree.map(shard, {names})  # and out_shardings of {function}: their shardings"""


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all state that one mesh axis can split: the axis with the most bytes."""
    is_training = training_step(recording) is not None
    wanted = (Role.PARAMETER, Role.OPTIMIZER_STATE) if is_training else (Role.PARAMETER,)
    size = recording.allocations.size
    found = list(each_axis(recording, *wanted))
    best = max(found, key=lambda on: int(size[on.rows].sum()), default=None)
    if best is not None and (piece := _advise_axis(recording, best)):
        yield piece


def _advise_axis(recording: Recording, split: Shardable) -> Advice | None:
    saved = _saving(recording, split)
    if saved is None or not _names(recording, split.rows):
        return None
    table, (axis, devices) = recording.allocations, split.axis
    size, names = int(table.size[split.rows].sum()), _names(recording, split.rows)
    of_axis = f"the mesh axis '{axis}'" if axis else f"{devices:,} devices"
    gathered = bool((roles(recording)[split.rows] == Role.PARAMETER).any())
    ordered = sort_by_size(recording, split.rows)
    dimension = dict(zip(split.rows.tolist(), split.dimension.tolist(), strict=True))[int(ordered[0])]
    cost = " Each parameter is gathered where it is used, which takes time." if gathered else ""
    return Advice(
        kind=AdviceKind.REPLICATION,
        title=f"Shard {', '.join(names)} over {f'{axis!r}, ' if axis else ''}{devices:,} devices",
        sentence=f"Each device holds {bytes_text(size)} of {', '.join(names)} that {of_axis} can split: the largest is "
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
    """Return the arguments, or else their parts, that these rows are most of."""
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

    Gathered parameters are kept from the first use to the last on GPU, and gathered again for each use on TPU, as far
    as seen on compiled programs. While one is used, the next may be gathered. Gradients may be reduced to parts.
    """
    rows = _with_results(recording, split)
    sharded, with_copies = (
        resize_rows(recording, of, split.part(recording.allocations.size[of]))
        for of in (rows, np.union1d(rows, _copies(recording, rows)).astype(np.int64))
    )
    used, kept = _gathered(recording, split)
    gradients = _gradients(recording, split)
    reduced = resize_rows(recording, gradients, split.part(recording.allocations.size[gradients]))
    program = recording.program
    on_tpu = program is not None and program.backend is Backend.TPU
    next_one = Change(*(np.array([n]) for n in (-1, recording.length, int(kept.bytes.max(initial=0)))))
    return saving(
        recording,
        combine(with_copies, used if on_tpu else kept),
        combine(sharded, kept, next_one),
        combine(with_copies, used, reduced),
    )


def _with_results(recording: Recording, split: Shardable) -> I64:
    """Return the rows of arguments, and of the results that return them updated."""
    found, row = input_output_pairs(recording), row_of_value(recording)
    back = row[found.value[np.isin(row[found.argument], split.rows)]]
    return np.union1d(split.rows, back[back >= 0]).astype(np.int64)


def _copies(recording: Recording, rows: I64) -> I64:
    """Return the copies of these rows, such as those in the layout of the gradients."""
    graph, row, table = dataflow_graph(recording), row_of_value(recording), recording.allocations
    if graph is None:
        return np.empty(0, dtype=np.int64)
    derived = graph.values.derivations
    whole = (derived.kind == Derivation.ELEMENTWISE) & (derived.steps == 0) & np.isin(row[derived.source], rows)
    source, target = row[derived.source[whole]], row[derived.target[whole]]
    is_copy = (target >= 0) & (table.size[source] == table.size[target])
    found: I64 = np.unique(target[is_copy]).astype(np.int64)
    return found


def _gathered(recording: Recording, split: Shardable) -> tuple[Change, Change]:
    """Return the rest of each parameter where the forward and backward passes read it, and from first to last read."""
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
    return Change(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def _passes_that_gather(recording: Recording) -> Mask:
    """Mark the positions that need whole parameters: the forward and backward passes. Updates need only parts."""
    step, graph = training_step(recording), dataflow_graph(recording)
    if step is None or graph is None:
        return np.ones(recording.length, dtype=bool)
    phase = step.phase[graph.at(np.arange(recording.length, dtype=np.int32))]
    found: Mask = (phase == TrainingPhase.FORWARD) | (phase == TrainingPhase.BACKWARD)
    return found


def _gradients(recording: Recording, split: Shardable) -> I64:
    """Return the rows of gradients of these parameters: those with as many elements."""
    graph, program, role = dataflow_graph(recording), recording.program, roles(recording)
    assert graph is not None and program is not None and program.value is not None
    elements = graph.values.elements[program.value]
    parameters = split.rows[role[split.rows] == Role.PARAMETER]
    is_gradient = (role == Role.GRADIENT) & (program.value >= 0)
    return np.flatnonzero(is_gradient & np.isin(elements, elements[parameters]))
