"""Training steps and the pass of each of their instructions, found by data flow.

A weight is an argument that is updated with a value computed from it. The result depends on the weight twice: element
by element (`w - lr * gradient`) and through the gradient. This determines the rest:

- the forward pass is everything on which the weights' first uses and the unpaired results, such as the loss, depend;
- gradients are the values that enter the element-by-element arithmetic of the updates;
- the backward pass is everything else on which the gradients depend.

A program may also return the gradients and leave the update to another program. Then weights are paired with gradients.

The forward pass may compute a value that only the backward pass needs, such as the derivative at a point. Data flow
cannot distinguish these passes, but JAX's names can: `jvp(...)` is forward, `transpose(jvp(...))` backward. Without
names, the end of the forward pass in the schedule decides. Names also decide that a program with JAX's names but
without `transpose(` contains no derivative, though `x + f(x)` looks like an update. Without names, a weight's gradient
must be computed from a value with which the weight was combined.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_memplugin.analysis.dataflow.graph import (
    CsrGraph,
    DataflowGraph,
    FirstUse,
    dataflow_graph,
    first_use,
    owning_argument,
)
from tb_memplugin.analysis.dataflow.input_output_pairs import (
    LABELS,
    InputOutputPairs,
    UpdateArithmetic,
    depends_on,
    updated_arguments,
)
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, U8, Mask, concatenate_ranges, marked
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

MAX_EVIDENCE = 8  # weights to test for a derivative, the largest first


class TrainingPhase(IntEnum):
    """The pass of a training step to which an instruction belongs."""

    NONE = 0  # in no training step, or without effect on one
    FORWARD = 1
    BACKWARD = 2
    UPDATE = 3


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """A training step, or only its derivative, by the nodes of its data flow."""

    turn: DataflowGraph  # one turn of a loop over steps
    pairs: InputOutputPairs  # arguments with their updates, or weights with the gradients that the program returns
    weight: Mask  # per pair: updated with a value computed from it
    owner: I32  # per node, from first_use.owning_argument
    phase: U8  # per node
    from_gradient: Mask  # per node: depends on a gradient, or, by JAX's names, on the backward pass
    gradient: Mask  # per value: a gradient, also after clipping, accumulation or averaging
    update_reads: Mask  # per read, in the order of `DataflowValues.use`: part of an update's arithmetic


@memoize
def training_step(recording: Recording) -> TrainingStep | None:
    """Analyze a program as a training step; None if it has no derivative or no data flow."""
    graph = dataflow_graph(recording)
    if graph is None:
        return None
    owner = owning_argument(graph, around_loops=False)
    transposed = graph.values.transposed
    # The nodes that depend on an operation that JAX named `transpose(`; None if there is none.
    differentiated = graph.forward.reach(transposed) if len(transposed) else None
    for returned in (False, True):
        pairs = _weight_gradient_pairs(graph.values) if returned else updated_arguments(recording)
        update = UpdateArithmetic.of(graph.values, pairs.value)
        every_use = first_use(graph, owner, ~update.reads)
        first_uses = every_use.combined_only
        eligible = graph.values.floating[pairs.argument] != 0
        # Without names, a cache looks like a table with updates of only some rows.
        eligible &= pairs.in_place == 0 if differentiated is None else differentiated[pairs.value]
        weight = _find_weights(graph, pairs, eligible, first_uses)
        if differentiated is not None and not weight.any():  # the weights, such as pixels, enter no product
            first_uses = every_use
            weight = _find_weights(graph, pairs, eligible, first_uses)
        if weight.any() and _has_derivative(graph, pairs, weight, first_uses):
            if returned:  # drop results that only have a weight's shape
                pairs, weight = pairs.take(weight), weight[weight]
            return _divide_into_passes(graph, pairs, weight, first_uses, update, owner, differentiated)
    return None


def _weight_gradient_pairs(values: DataflowValues) -> InputOutputPairs:
    """Pair arguments with results that may be their gradients, by shape and order.

    A gradient has the shape of its weight, and weights and gradients are in the order of one tree.
    """
    arguments = np.flatnonzero((values.argument >= 0) & (values.floating != 0))
    free: dict[int, list[int]] = {}
    for argument in arguments[np.argsort(values.argument[arguments])][::-1].tolist():
        free.setdefault(int(values.shape[argument]), []).append(argument)
    pairs = [
        (of_shape.pop(), leaf)
        for leaf, value in enumerate(values.result.tolist())
        if value >= 0 and values.argument[value] < 0 and (of_shape := free.get(int(values.shape[value])))
    ]
    table = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    false = np.zeros(len(table), dtype=np.uint8)
    return InputOutputPairs(table[:, 0], table[:, 1], values.result[table[:, 1]], false, false)


def _find_weights(graph: DataflowGraph, pairs: InputOutputPairs, may_be_weight: Mask, first_uses: FirstUse) -> Mask:
    """Mark the pairs whose result depends on a value with which the argument was combined, not only on the argument.

    If there are many pairs, a sample is tested: evenly spaced by first use, and the last, where the forward pass ends.
    Other pairs whose first use is before that end count as weights.
    """
    weight, eligible = np.zeros(len(pairs), dtype=bool), np.flatnonzero(may_be_weight)
    first, last = first_uses.row_range(pairs.argument[eligible])
    eligible, first, last = (column[first < last] for column in (eligible, first, last))
    order = np.argsort(first_uses.position[first], kind="stable")
    eligible, first, last = eligible[order], first[order], last[order]
    tried = np.unique(np.linspace(0, len(eligible) - 1, min(LABELS, len(eligible))).astype(np.int64))
    count = (last - first)[tried]
    seeds = first_uses.node[concatenate_ranges(first[tried], count)]
    is_weight = depends_on(graph, seeds, np.r_[0, np.cumsum(count)], pairs.value[eligible[tried]])
    weight[eligible[: tried[is_weight].max(initial=-1) + 1]] = True
    weight[eligible[tried]] = is_weight
    return weight


def _has_derivative(graph: DataflowGraph, pairs: InputOutputPairs, weight: Mask, first_uses: FirstUse) -> bool:
    """Return True if the program contains a derivative. `x + f(x)` without one looks like an update, too."""
    names = graph.program.op_name.strings.blob
    if b"jit(" in names:
        return b"transpose(" in names
    largest = np.flatnonzero(weight)
    largest = largest[np.argsort(-graph.values.elements[pairs.argument[largest]], kind="stable")]
    return any(_is_mirrored(graph, first_uses, *pair) for pair in zip(
        pairs.argument[largest[:MAX_EVIDENCE]].tolist(), pairs.value[largest[:MAX_EVIDENCE]].tolist(), strict=True
    ))  # fmt: skip


def _is_mirrored(graph: DataflowGraph, first_uses: FirstUse, argument: int, result: int) -> bool:
    """Return True if the value with which the argument was first combined is read again on the path to the update.

    The derivative of `x @ w` with respect to w is computed from x.
    """
    first, last = (int(bound[0]) for bound in first_uses.row_range(np.array([argument], np.int32)))
    joint = int(first_uses.node[first])
    with_it = graph.backward.to[graph.backward.begin[joint] : graph.backward.begin[joint + 1]]
    with_it = with_it[with_it < len(graph.values)]
    with_it = with_it[(graph.values.elements[with_it] > 1) & ~np.isin(with_it, first_uses.value[first:last])]
    between = graph.forward.reach(np.array([joint])) & graph.backward.reach(np.array([result]))
    read, node = graph.consumers
    again = node[np.isin(graph.values.used_value[read], with_it)]
    return bool(between[again[(again != joint) & ~np.isin(again, first_uses.node[first:last])]].any())


def _divide_into_passes(
    graph: DataflowGraph,
    pairs: InputOutputPairs,
    weight: Mask,
    first_uses: FirstUse,
    update: UpdateArithmetic,
    owner: I32,
    differentiated: Mask | None,
) -> TrainingStep:
    values, n = graph.values, len(graph.values)
    # In a loop over steps, the next turn's forward pass must not count as depending on this turn's update.
    turn = graph.without(update.inside, update.inside)
    first, last = first_uses.row_range(pairs.argument[weight])
    joints = first_uses.node[first[first < last]]
    of_weights = UpdateArithmetic.of(values, pairs.value[weight])
    entering = of_weights.sources(graph.program.op)
    source = entering | of_weights.fused_operands(graph.program.op, update.reads)
    source &= turn.forward.reach(joints)[:n] & ~turn.backward.reach(joints)[:n]
    from_gradient = turn.forward.reach(np.flatnonzero(source))
    leaves = values.result[values.result >= 0]
    is_pair = marked(n, pairs.value)
    leaves = leaves[(values.argument[leaves] < 0) & ~from_gradient[leaves] & ~is_pair[leaves]]
    if differentiated is not None:  # arrays that the backward pass computes, such as gradients of inputs
        leaves = leaves[~differentiated[leaves] | (values.elements[leaves] == 1)]
    forward = _forward_nodes(turn, joints, leaves)
    source &= ~forward[:n]
    needed = turn.backward.reach(np.flatnonzero(source))
    backward = _backward_nodes(turn, forward & needed, needed & ~forward)
    forward |= needed & ~backward
    results = turn.backward.reach(pairs.value)
    phase = np.select(
        [forward, backward, results | from_gradient],
        [TrainingPhase.FORWARD, TrainingPhase.BACKWARD, TrainingPhase.UPDATE],
        TrainingPhase.NONE,
    ).astype(np.uint8)
    # An instruction with several results belongs to the last pass that any of them belongs to.
    np.maximum.at(phase, graph.at(values.producer[values.bundled[1]]), phase[values.bundled[1]])
    gradient = (source & entering) | (
        of_weights.inside & from_gradient[:n] & ~needed[:n] & ~update.from_arguments(pairs.argument)
    )
    gradient |= _parts_of_gradients(values, gradient, phase)
    if differentiated is not None:
        from_gradient |= differentiated
    return TrainingStep(turn, pairs, weight, owner, phase, from_gradient, gradient, update.reads)


def _parts_of_gradients(values: DataflowValues, gradient: Mask, phase: U8) -> Mask:
    """Mark the backward pass's values that become a gradient when the rest is added to them in place."""
    pairs, backward = values.derivations, phase[: len(values)] == TrainingPhase.BACKWARD
    kept = (pairs.kind == Derivation.IN_PLACE) | (pairs.kind == Derivation.ELEMENTWISE) & (pairs.steps == 0)
    kept &= backward[pairs.source] & (values.argument[pairs.source] < 0)
    return CsrGraph.of(pairs.target[kept], pairs.source[kept], len(values)).reach(np.flatnonzero(gradient))


def _backward_nodes(turn: DataflowGraph, forward: Mask, either: Mask) -> Mask:
    """Mark the nodes of the backward pass among `either`, the nodes on which only gradients depend.

    The others compute values that the forward pass keeps for the backward pass.
    """
    named, transposed = _is_named(turn, b"jvp("), _is_named(turn, b"transpose(")
    if not transposed.any():
        later = either & (turn.position > int(turn.position[forward].max(initial=-1)))
        return later | either & turn.forward.reach(np.flatnonzero(later))
    # Instructions without a name copy values for the backward pass, unless they allocate or clear memory.
    arguments = np.flatnonzero(turn.values.argument >= 0)
    later = either & (transposed | ~named & turn.forward.reach(arguments))
    return later | either & turn.forward.reach(np.flatnonzero(either & transposed))


def _is_named(graph: DataflowGraph, word: bytes) -> Mask:
    """Mark the nodes whose operation's name contains the word."""
    values, positions = graph.values.op_name, graph.program.op_name
    if values.strings is positions.strings:  # true of all programs from files: search their strings once
        return Text(np.r_[values.codes, positions.codes], values.strings).contains(word)
    named: Mask = np.r_[values.contains(word), positions.contains(word)]
    return named


def _forward_nodes(turn: DataflowGraph, joints: I32, leaves: I32) -> Mask:
    """Mark the nodes on which results such as the loss, and the weights' first uses (`joints`), depend.

    If the forward pass does not need a weight's value, the weight is first used in the backward pass. So if the results
    depend on most of the first uses, any first uses after the last of these are ignored.
    """
    by_results = turn.backward.reach(leaves)
    reached = by_results[joints]
    if 2 * np.count_nonzero(reached) >= len(reached):
        position = turn.position[joints]
        joints = joints[~reached & (position <= position[reached].max(initial=-1))]
    return turn.backward.reach(joints) | by_results if len(joints) else by_results
