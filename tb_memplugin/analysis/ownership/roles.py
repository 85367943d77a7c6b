"""The role of each buffer, from data flow and not from words in names (training_step.py uses names to break ties)."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.dataflow.copies import copied_from, copies
from tb_memplugin.analysis.dataflow.first_use import owning_argument
from tb_memplugin.analysis.dataflow.graph import CsrGraph, DataflowGraph, dataflow_graph
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep, training_step
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.argument_roles import roles_of_arguments
from tb_memplugin.analysis.ownership.torch_categories import recorded_roles
from tb_memplugin.analysis.ownership.torch_roles import torch_roles
from tb_memplugin.model.arrays import I32, U8, Mask
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

FORWARD, BACKWARD, UPDATE = TrainingPhase.FORWARD, TrainingPhase.BACKWARD, TrainingPhase.UPDATE
# Operations that compute nothing themselves.
PASS_THROUGH = {"parameter", "while", "conditional", "call", "async-start"}


@memoize
def roles(recording: Recording) -> U8:
    """Return the Role of each row of `allocations`.

    Training steps:
    - a parameter is an argument that the forward pass reads and that is returned updated by a gradient;
    - optimizer state is returned updated, the forward pass does not read it, and the update of a weight does;
    - state is returned updated otherwise: a hidden state, a running mean, an average of the weights;
    - what is not returned, or returned as it was, is a parameter or an input (see below): frozen weights, LoRA's base,
      a reference model;
    - an activation is computed in the forward pass and read in the backward pass. What the backward pass computes again
      is temporary;
    - a gradient is a weight's: it enters the update's arithmetic, also summed, clipped or averaged. The derivatives of
      activations are temporary;
    - everything else is temporary.
    A program that returns gradients, without the update, has parameters and activations too.

    Other programs:
    - state is an argument that is returned, donated or updated in place, such as a key-value cache;
    - the others are parameters or inputs, and unknown where nothing decides.

    Products tell parameters from inputs (argument_evidence.py), then the pytree, then shapes.

    A copy has the role of the argument that it is a copy of: a prefetch, another layout, a cast, the gathered parts of
    a sharded weight. So has a value computed from one parameter alone.

    Persistent memory has the role of its argument, result or constant. Roles of PyTorch snapshots come from stacks and
    lifetimes (torch_roles.py). All other recordings keep the roles of their source.
    """
    if recording.kind.has_tensor_stacks:
        return torch_roles(recording)
    graph, program, rows = dataflow_graph(recording), recording.program, value_roles(recording)
    recorded = recorded_roles(recording)
    if graph is None or program is None or program.value is None:
        return recorded
    region = recording.allocations.region
    argument_role = np.full(len(recording.regions), Role.UNKNOWN, dtype=np.uint8)
    is_argument = (program.value >= 0) & (graph.values.argument[program.value] >= 0)
    argument_role[region[is_argument]] = rows[is_argument]
    kind = recording.regions.kind[region]
    return np.select(
        [kind == RegionKind.TEMPORARY, (kind & RegionKind.PARAMETER) != 0], [rows, argument_role[region]], recorded
    ).astype(np.uint8)


@memoize
def value_roles(recording: Recording) -> U8:
    """Return the Role of each row's own value, not of its memory; results and constants are temporary.

    An activation may lie in memory reserved for the new weights, where it adds nothing.
    """
    graph, program = dataflow_graph(recording), recording.program
    if graph is None or program is None or program.value is None:
        return recorded_roles(recording)
    of_value = _roles_of_values(recording, graph, program.op)
    return np.where(program.value >= 0, of_value[program.value], Role.UNKNOWN).astype(np.uint8)


def _roles_of_values(recording: Recording, graph: DataflowGraph, op: Text) -> U8:
    """Return the Role of each value, except results and constants, whose role follows from their memory."""
    values, step = graph.values, training_step(recording)
    role = np.full(len(values), Role.TEMPORARY, dtype=np.uint8)
    arguments = np.flatnonzero(values.argument >= 0).astype(np.int32)
    role[arguments] = of_arguments = roles_of_arguments(recording, graph, step, arguments)
    parameters = arguments[of_arguments == Role.PARAMETER]
    if step is None:
        role[np.isin(owning_argument(graph, around_loops=True)[: len(values)], parameters)] = Role.PARAMETER
    else:
        _mark_roles_by_pass(graph, op, step, parameters, role)
    # A loop's carry of a returned argument has the argument's role.
    pairs, memory = input_output_pairs(recording) if step is None else step.pairs, _shared_memory(values)
    for returned_role in (Role.PARAMETER, Role.OPTIMIZER_STATE, Role.STATE):
        if pairs.argument.size:
            role[memory.reach(pairs.argument[role[pairs.argument] == returned_role])] = returned_role
    late = np.isin(_making_pass(values, op, step), (BACKWARD, UPDATE)) if step else np.zeros(len(values), dtype=bool)
    _mark_copies(values, late, role)
    return role


def _mark_copies(values: DataflowValues, late: Mask, role: U8) -> None:
    """Give copies the role of what they are copies of: of arguments, and in the backward pass of activations.

    A cast of an activation is a new value, but compilers' own copies are not, which have no name.
    """
    origin = copied_from(values)
    of_argument = (values.argument[origin] >= 0) & (role[origin] != Role.UNKNOWN) & (role == Role.TEMPORARY)
    role[of_argument] = role[origin[of_argument]]
    source, target = copies(values)
    moved = late[target] & (role[target] == Role.TEMPORARY)
    moved &= (values.shape[source] == values.shape[target]) | ~values.scope.nonempty[target]
    later = CsrGraph.of(source[moved], target[moved], len(values))
    role[later.reach(np.flatnonzero(role == Role.ACTIVATION))] = Role.ACTIVATION


def _mark_roles_by_pass(graph: DataflowGraph, op: Text, step: TrainingStep, parameters: I32, role: U8) -> None:
    """Set the roles of activations, gradients, and values computed from one of the parameters alone."""
    values, n = graph.values, len(graph.values)
    producer_pass = _making_pass(values, op, step)
    handed_on = CsrGraph.of(values.loop_carried[1], values.loop_carried[0], n)
    computed = graph.forward.reach(np.flatnonzero(values.argument >= 0))[:n] & (values.argument < 0)
    activation = handed_on.reach(values.used_value[_read_for_gradients(graph, step)])
    activation &= computed & (producer_pass == FORWARD)
    memory = _shared_memory(values)
    owner = step.owner[:n]
    weights = np.zeros(n + 1, dtype=bool)
    weights[parameters] = True
    role[memory.reach(np.flatnonzero(activation))] = Role.ACTIVATION
    role[memory.reach(np.flatnonzero(step.gradient & (producer_pass != FORWARD)))] = Role.GRADIENT
    role[weights[owner] & (owner >= 0) & ((producer_pass == FORWARD) | (producer_pass == BACKWARD))] = Role.PARAMETER


def _read_for_gradients(graph: DataflowGraph, step: TrainingStep) -> Mask:
    """Mark the reads, in the order of `DataflowValues.use`, of what the backward pass computes gradients from.

    If the compiler fused a gradient's product with the update, the product's operands count.
    """
    values, (read, node) = graph.values, graph.consumers
    of_weights = step.pairs.value[step.from_gradient[step.pairs.value]]
    fused = (step.phase == UPDATE) & step.turn.backward.reach(of_weights)
    found = np.zeros(len(values.use), dtype=bool)
    found[read[fused[node]]] = True
    found &= values.elements[values.used_value] > 1
    found[read[step.phase[node] == BACKWARD]] = True
    return found & ~step.update_reads


def _making_pass(values: DataflowValues, op: Text, step: TrainingStep) -> U8:
    """Return the pass that computes each value."""
    n = len(values)
    makes = op.where(lambda name: name not in PASS_THROUGH)
    by_instruction = (values.producer >= 0) & makes[values.producer]
    by_instruction[values.bundled[1]] = False
    producer_pass: U8 = np.where(by_instruction, step.phase[n + np.maximum(values.producer, 0)], step.phase[:n]).astype(
        np.uint8
    )
    return producer_pass


def _shared_memory(values: DataflowValues) -> CsrGraph:
    """Return a graph with edges, both ways, between values that share memory: loop carries and in-place updates."""
    in_place = values.derivations.kind == Derivation.IN_PLACE
    one = np.r_[values.loop_carried[0], values.derivations.source[in_place]].astype(np.int32)
    other = np.r_[values.loop_carried[1], values.derivations.target[in_place]].astype(np.int32)
    same = values.shape[one] == values.shape[other]
    one, other = one[same], other[same]
    return CsrGraph.of(np.r_[one, other], np.r_[other, one], len(values))
