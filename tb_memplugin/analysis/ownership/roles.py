"""The role of each buffer, from data flow. Names decide only ties (training_step.py)."""

import numpy as np

from tb_memplugin.analysis.dataflow.graph import (
    CsrGraph,
    DataflowGraph,
    copied_from,
    copies,
    dataflow_graph,
    first_use,
    owning_argument,
    row_of_value,
    shared_memory,
)
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep, training_step
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.argument_evidence import KnownArguments, complete_trees, decide_roles
from tb_memplugin.analysis.ownership.torch_roles import recorded_roles, torch_roles
from tb_memplugin.model.arrays import I32, U8, Mask, dimensions, largest_per, marked
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.recording import Recording

NARROW = {"s8", "u8", "s4", "u4", "s2", "u2"}  # integer types of quantized weights, and of images
FORWARD, BACKWARD, UPDATE = TrainingPhase.FORWARD, TrainingPhase.BACKWARD, TrainingPhase.UPDATE


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
    row = row_of_value(recording)[arguments]
    quantized = np.append(recording.allocations.dtype.isin(NARROW), False)[row]  # maybe; the last: in another memory
    indices = (values.floating[arguments] == 0) & ~quantized & ~is_kept
    role[arguments[indices & (role[arguments] == Role.UNKNOWN)]] = Role.INPUT
    known = KnownArguments(arguments, role[arguments], recording)
    decided = decide_roles(graph, known, step)
    donated = np.isin(arguments, pairs.argument[pairs.donated != 0])
    decided[(decided == Role.UNKNOWN) & is_kept & (donated | (step is not None))] = Role.STATE
    if step is not None:
        decided[decided == Role.UNKNOWN] = Role.INPUT
    else:
        _decide_by_shapes(recording, graph, arguments, decided)
        # If a whole pytree is returned updated, the caller passes it to the next call.
        returned = complete_trees(known.path, np.isin(arguments, pairs.argument[~kept]))
        decided[returned & (decided != Role.PARAMETER)] = Role.STATE
    return decided


def _decide_by_shapes(recording: Recording, graph: DataflowGraph, arguments: I32, role: U8) -> None:
    """Set the roles of an inference program's arguments that products do not decide.

    The first dimension of data is the batch, and a bias is broadcast to the batch.
    """
    row, shape = row_of_value(recording)[arguments], recording.allocations.shape
    batch = np.array([(*dimensions(shape[at]), 0)[0] if at >= 0 else 0 for at in row.tolist()], dtype=np.int64)
    sizes = np.setdiff1d(batch[role == Role.INPUT], np.r_[batch[role == Role.PARAMETER], 0, 1])
    owner = owning_argument(graph, around_loops=True)
    uses = first_use(graph, owner, np.ones(len(graph.values.use), dtype=bool)).combined_only
    first, last = uses.row_range(arguments)
    used = np.flatnonzero(first < last)
    result = largest_per(graph.at(graph.values.producer), graph.values.elements, graph.nodes)
    result[: len(graph.values)] = graph.values.elements
    broadcast = np.zeros(len(arguments), dtype=bool)
    broadcast[used] = result[uses.node[first[used]]] > graph.values.elements[uses.value[first[used]]]
    is_open = role == Role.UNKNOWN
    role[is_open & ((first >= last) | np.isin(batch, sizes))] = Role.INPUT
    role[(role == Role.UNKNOWN) & broadcast & (role == Role.INPUT).any()] = Role.PARAMETER


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


# Operations that compute nothing themselves.
PASS_THROUGH = {"parameter", "while", "conditional", "call", "async-start"}


@memoize
def roles(recording: Recording) -> U8:
    """Return the Role of each row of `allocations`.

    Training steps:
    - a parameter is an argument that the forward pass reads and that is returned updated by a gradient;
    - optimizer state is returned updated, and read by the update of a weight, but not by the forward pass;
    - state is returned updated otherwise: a hidden state, a running mean, an average of the weights;
    - an argument that is not returned, or returned unchanged, is a parameter or an input (see below): frozen weights,
      LoRA's base, a reference model;
      - an activation is computed in the forward pass and read in the backward pass. Values that the backward pass
      recomputes are temporary;
    - a gradient is a weight's: it enters the update's arithmetic, directly or summed, clipped or averaged. The
      derivatives of activations are temporary;
    - everything else is temporary.
    A program that returns gradients, without the update, also has parameters and activations.

    Other programs:
    - state is an argument that is returned, donated or updated in place, such as a key-value cache;
    - the others are parameters or inputs, and unknown where nothing decides.

    Products distinguish parameters from inputs (argument_evidence.py), then the pytree, then shapes.

    A copy of an argument has the argument's role: a prefetch, another layout, a cast, the gathered parts of a sharded
    weight. So has a value computed from one parameter alone.

    Persistent memory has the role of its argument, result or constant. Roles of PyTorch snapshots come from stacks and
    lifetimes (torch_roles.py). All other recordings keep the roles of their source.
    """
    if recording.kind.has_tensor_stacks:
        return torch_roles(recording)
    graph, rows, recorded = dataflow_graph(recording), value_roles(recording), recorded_roles(recording)
    if graph is None:
        return recorded
    region = recording.allocations.region
    argument_role = np.full(len(recording.regions), Role.UNKNOWN, dtype=np.uint8)
    argument_role[region[graph.is_argument]] = rows[graph.is_argument]
    kind = recording.regions.kind[region]
    return np.select(
        [kind == RegionKind.TEMPORARY, (kind & RegionKind.PARAMETER) != 0], [rows, argument_role[region]], recorded
    ).astype(np.uint8)


@memoize
def value_roles(recording: Recording) -> U8:
    """Return the Role of each row's own value, not of its memory; results and constants are temporary.

    An activation may lie in memory reserved for the new weights, where it adds nothing.
    """
    graph = dataflow_graph(recording)
    if graph is None:
        return recorded_roles(recording)
    of_value = _roles_of_values(recording, graph)
    return np.where(graph.value >= 0, of_value[graph.value], Role.UNKNOWN).astype(np.uint8)


def _roles_of_values(recording: Recording, graph: DataflowGraph) -> U8:
    """Return the Role of each value, except results and constants, whose role follows from their memory."""
    values, step = graph.values, training_step(recording)
    role = np.full(len(values), Role.TEMPORARY, dtype=np.uint8)
    arguments = np.flatnonzero(values.argument >= 0).astype(np.int32)
    role[arguments] = of_arguments = roles_of_arguments(recording, graph, step, arguments)
    parameters = arguments[of_arguments == Role.PARAMETER]
    if step is None:
        role[np.isin(owning_argument(graph, around_loops=True)[: len(values)], parameters)] = Role.PARAMETER
    else:
        _mark_roles_by_pass(graph, step, parameters, role)
    # A loop's carry of a returned argument has the argument's role.
    pairs, memory = input_output_pairs(recording) if step is None else step.pairs, _shared_memory(values)
    for returned_role in (Role.PARAMETER, Role.OPTIMIZER_STATE, Role.STATE):
        if pairs.argument.size:
            role[memory.reach(pairs.argument[role[pairs.argument] == returned_role])] = returned_role
    late = np.isin(_making_pass(graph, step), (BACKWARD, UPDATE)) if step else np.zeros(len(values), dtype=bool)
    _mark_copies(values, late, role)
    return role


def _mark_copies(values: DataflowValues, late: Mask, role: U8) -> None:
    """Give copies of arguments, and in the backward pass copies of activations, the role of the original.

    A cast of an activation is a new value, but a compiler's own copies, which have no name, are not.
    """
    origin = copied_from(values)
    of_argument = (values.argument[origin] >= 0) & (role[origin] != Role.UNKNOWN) & (role == Role.TEMPORARY)
    role[of_argument] = role[origin[of_argument]]
    source, target = copies(values)
    moved = late[target] & (role[target] == Role.TEMPORARY)
    moved &= (values.shape[source] == values.shape[target]) | ~values.op_name.nonempty[target]
    later = CsrGraph.of(source[moved], target[moved], len(values))
    role[later.reach(np.flatnonzero(role == Role.ACTIVATION))] = Role.ACTIVATION


def _mark_roles_by_pass(graph: DataflowGraph, step: TrainingStep, parameters: I32, role: U8) -> None:
    """Set the roles of activations, gradients, and values computed from one of the parameters alone."""
    values, n = graph.values, len(graph.values)
    producer_pass = _making_pass(graph, step)
    handed_on = CsrGraph.of(values.loop_carried[1], values.loop_carried[0], n)
    computed = graph.forward.reach(np.flatnonzero(values.argument >= 0))[:n] & (values.argument < 0)
    activation = handed_on.reach(values.used_value[_read_for_gradients(graph, step)])
    activation &= computed & (producer_pass == FORWARD)
    memory = _shared_memory(values)
    owner = step.owner[:n]
    weights = marked(n + 1, parameters)
    role[memory.reach(np.flatnonzero(activation))] = Role.ACTIVATION
    role[memory.reach(np.flatnonzero(step.gradient & (producer_pass != FORWARD)))] = Role.GRADIENT
    role[weights[owner] & (owner >= 0) & ((producer_pass == FORWARD) | (producer_pass == BACKWARD))] = Role.PARAMETER


def _read_for_gradients(graph: DataflowGraph, step: TrainingStep) -> Mask:
    """Mark the reads, in the order of `DataflowValues.use`, of values from which the backward pass computes gradients.

    If the compiler fused a gradient's product with the update, the product's operands count.
    """
    values, (read, node) = graph.values, graph.consumers
    of_weights = step.pairs.value[step.from_gradient[step.pairs.value]]
    fused = (step.phase == UPDATE) & step.turn.backward.reach(of_weights)
    found = marked(len(values.use), read[fused[node]])
    found &= values.elements[values.used_value] > 1
    found[read[step.phase[node] == BACKWARD]] = True
    return found & ~step.update_reads


def _making_pass(graph: DataflowGraph, step: TrainingStep) -> U8:
    """Return the pass that computes each value."""
    values, n = graph.values, len(graph.values)
    makes = graph.program.op.where(lambda name: name not in PASS_THROUGH)
    by_instruction = (values.producer >= 0) & makes[values.producer]
    by_instruction[values.bundled[1]] = False
    return np.where(by_instruction, step.phase[n + np.maximum(values.producer, 0)], step.phase[:n]).astype(np.uint8)


def _shared_memory(values: DataflowValues) -> CsrGraph:
    """Return a graph with edges, both ways, between values of one shape that share memory."""
    one, other = shared_memory(values)
    same = values.shape[one] == values.shape[other]
    one, other = one[same], other[same]
    return CsrGraph.of(np.r_[one, other], np.r_[other, one], len(values))
