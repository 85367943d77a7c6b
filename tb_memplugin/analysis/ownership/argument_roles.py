"""Roles of a program's arguments: by their updates, by the products that they enter, by their relatives, by shapes."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.dataflow.copies import copied_from
from tb_memplugin.analysis.dataflow.first_use import first_use, owning_argument
from tb_memplugin.analysis.dataflow.graph import DataflowGraph, row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep
from tb_memplugin.analysis.ownership.argument_evidence import KnownArguments, decide_roles
from tb_memplugin.analysis.ownership.argument_trees import complete_trees
from tb_memplugin.model.arrays import I32, U8, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.shapes import dimensions

NARROW = {"s8", "u8", "s4", "u4", "s2", "u2"}  # integer types of quantized weights, and of images
FORWARD = TrainingPhase.FORWARD


def roles_of_arguments(recording: Recording, graph: DataflowGraph, step: TrainingStep | None, arguments: I32) -> U8:
    """Return the Role of each argument: by its update, and otherwise by products and relatives."""
    values = graph.values
    role = np.full(len(values), Role.UNKNOWN, dtype=np.uint8)
    pairs = input_output_pairs(recording) if step is None else step.pairs
    kept = copied_from(values)[pairs.value] == pairs.argument  # returned as it was
    if step is None:
        role[pairs.argument[((pairs.donated | pairs.in_place) != 0) & ~kept]] = Role.STATE
    else:
        role[pairs.argument[~kept]] = _roles_of_updated_arguments(graph, step)[~kept]
    is_kept = np.isin(arguments, pairs.argument[kept])
    indices = (values.floating[arguments] == 0) & ~_may_be_quantized(recording, arguments) & ~is_kept
    role[arguments[indices & (role[arguments] == Role.UNKNOWN)]] = Role.INPUT
    known = KnownArguments(arguments, role[arguments], recording)
    decided = decide_roles(graph, known, step)
    donated = np.isin(arguments, pairs.argument[pairs.donated != 0])
    decided[(decided == Role.UNKNOWN) & is_kept & (donated | (step is not None))] = Role.STATE
    if step is not None:
        decided[decided == Role.UNKNOWN] = Role.INPUT
    else:
        _decide_by_shapes(recording, graph, arguments, decided)
        # A pytree that is returned updated as a whole is passed to the next call.
        returned = complete_trees(known.path, np.isin(arguments, pairs.argument[~kept]))
        decided[returned & (decided != Role.PARAMETER)] = Role.STATE
    return decided


def _decide_by_shapes(recording: Recording, graph: DataflowGraph, arguments: I32, role: U8) -> None:
    """Set the roles of arguments of an inference program that products leave open.

    Data has the batch as its first dimension, and a bias is broadcast to the batch.
    """
    row, shape = row_of_value(recording)[arguments], recording.allocations.shape
    batch = np.array([(*dimensions(shape[at]), 0)[0] if at >= 0 else 0 for at in row.tolist()], dtype=np.int64)
    sizes = np.setdiff1d(batch[role == Role.INPUT], np.r_[batch[role == Role.PARAMETER], 0, 1])
    owner = owning_argument(graph, around_loops=True)
    uses = first_use(graph, owner, np.ones(len(graph.values.use), dtype=bool)).combined_only
    first, last = uses.row_range(arguments)
    used = np.flatnonzero(first < last)
    result = np.zeros(graph.nodes, dtype=np.int64)
    np.maximum.at(result, graph.at(graph.values.producer), graph.values.elements)
    result[: len(graph.values)] = graph.values.elements
    broadcast = np.zeros(len(arguments), dtype=bool)
    broadcast[used] = result[uses.node[first[used]]] > graph.values.elements[uses.value[first[used]]]
    is_open = role == Role.UNKNOWN
    role[is_open & ((first >= last) | np.isin(batch, sizes))] = Role.INPUT
    role[(role == Role.UNKNOWN) & broadcast & (role == Role.INPUT).any()] = Role.PARAMETER


def _may_be_quantized(recording: Recording, arguments: I32) -> Mask:
    """Mark the arguments that are integers of at most 8 bits, and not known to be anything else."""
    row = row_of_value(recording)[arguments]
    marked: Mask = np.append(recording.allocations.dtype.isin(NARROW), False)[row]  # the last: in another memory
    return marked


def _roles_of_updated_arguments(graph: DataflowGraph, step: TrainingStep) -> U8:
    """Return the Role of each argument that a training step returns updated."""
    pairs, uses = step.pairs, first_use(graph, step.owner, ~step.update_reads)
    read = np.isin(pairs.argument, uses.argument[step.phase[uses.node] == FORWARD])
    by_gradient = step.from_gradient[pairs.value] & (graph.values.floating[pairs.argument] != 0)
    for_weights = step.turn.backward.reach(pairs.value[step.weight])[pairs.argument]
    return np.select(
        [step.weight | (read & by_gradient), read | ~for_weights],
        [Role.PARAMETER, Role.STATE],
        Role.OPTIMIZER_STATE,
    ).astype(np.uint8)
