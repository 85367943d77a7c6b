"""Whether a program is a training step, and which pass of it each instruction belongs to: by data flow.

A weight is an argument that is updated by what was computed from it: its twin among the results comes of it twice,
once element by element (`w - lr * gradient`) and once by way of the gradient. From there:

- the forward pass is what weights are first joined with, and what results without a twin, such as the loss, come of;
- gradients are what enters the element-by-element arithmetic of the updates;
- the backward pass is what they come of, apart from the forward pass.

A program may also return the gradients and leave the update to another; then they are its weights' twins.

What the backward pass alone needs may be worked out in the forward pass already, such as a derivative at a point.
Data flow cannot tell which of the two it is. The names that JAX gives do: `jvp(...)` is forward and
`transpose(jvp(...))` backward; without names the schedule does, by where the forward pass ends. Names decide one
thing more: a program that JAX named, but that has no `transpose(` anywhere, holds no derivative, though `x + f(x)`
looks like an update. Without names, a weight's gradient must be made from what the weight itself was joined with.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_memplugin.analysis.dataflow.first_use import FirstUse, first_use, owning_argument
from tb_memplugin.analysis.dataflow.graph import DataflowGraph, Mask, concatenate_ranges, contains_text, dataflow_graph
from tb_memplugin.analysis.dataflow.input_output_pairs import (
    LABELS,
    NO_PAIRS,
    InputOutputPairs,
    depends_on,
    input_output_pairs,
)
from tb_memplugin.analysis.dataflow.update_arithmetic import UpdateArithmetic
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.arrays import I32, U8
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording

MAX_EVIDENCE = 8  # weights that are tried for it, the largest first


class TrainingPhase(IntEnum):
    """Which pass of a training step an instruction belongs to."""

    NONE = 0  # of no training step, or of no consequence for it
    FORWARD = 1
    BACKWARD = 2
    UPDATE = 3


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """A training step, or a derivative alone, by the nodes of its flow."""

    pairs: InputOutputPairs  # arguments with their updates, or weights with the gradients that the program returns
    weight: Mask  # per pair: updated by what was computed from it
    owner: I32  # per node of the flow, as of reads.owner_of
    phase: U8  # per node
    follows: Mask  # per node: comes of a gradient
    gradient: Mask  # per value: a gradient, or one that was clipped, added up, averaged
    updating: Mask  # per read, in the order of `Values.use`: by the element-by-element arithmetic of an update


@memoize
def training_step(recording: Recording) -> TrainingStep | None:
    """None where a program differentiates nothing, and where nothing is known of its data flow."""
    known, program = dataflow_graph(recording), recording.program
    if known is None or program is None:
        return None
    owner = owning_argument(known, around=False)
    for returned, candidates in ((False, input_output_pairs), (True, _weight_gradient_pairs)):
        pairs = candidates(recording)
        update = UpdateArithmetic.of(known.values, pairs.value)
        found = first_use(known, owner, ~update.reading).joined_only
        weight = _find_weights(known, pairs, found)
        if weight.any() and _has_derivative(known, program, pairs, weight, found):
            if returned:  # a result that is no gradient has only the shape of one
                pairs, weight = pairs.take(weight), weight[weight]
            return _divide_into_passes(known, program, pairs, weight, found, update, owner)
    return None


def _weight_gradient_pairs(recording: Recording) -> InputOutputPairs:
    """The arguments and results that may be weights and their gradients, where nothing is updated: by shape, in order.

    A gradient has the shape of its weight, and both come in the order of one tree.
    """
    known = dataflow_graph(recording)
    if known is None:
        return NO_PAIRS
    values = known.values
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
    no = np.zeros(len(table), dtype=np.uint8)
    return InputOutputPairs(table[:, 0], table[:, 1], values.result[table[:, 1]], no, no)


def _find_weights(known: DataflowGraph, pairs: InputOutputPairs, found: FirstUse) -> Mask:
    """Per twin: whether its result comes of what it was joined with, and not only of itself.

    Of many, some are tried, evenly by where they are joined, and the last for certain: there the forward pass ends.
    What else is joined before that end counts as they do.
    """
    values, weight = known.values, np.zeros(len(pairs), dtype=bool)
    asked = np.flatnonzero((values.floating[pairs.argument] != 0) & (pairs.in_place == 0))
    first, last = found.begin(pairs.argument[asked])
    asked, first, last = (column[first < last] for column in (asked, first, last))
    order = np.argsort(found.position[first], kind="stable")
    asked, first, last = asked[order], first[order], last[order]
    tried = np.unique(np.linspace(0, len(asked) - 1, min(LABELS, len(asked))).astype(np.int64))
    count = (last - first)[tried]
    seeds = known.at(found.position[concatenate_ranges(first[tried], count)])
    is_weight = depends_on(known, seeds, np.r_[0, np.cumsum(count)], pairs.value[asked[tried]])
    weight[asked[: tried[is_weight].max(initial=-1) + 1]] = True
    weight[asked[tried]] = is_weight
    return weight


def _has_derivative(
    known: DataflowGraph, program: Program, pairs: InputOutputPairs, weight: Mask, found: FirstUse
) -> bool:
    """Whether there is a derivative at all: `x + f(x)` alone looks like an update."""
    if b"jit(" in program.scope.strings.blob:
        return b"transpose(" in program.scope.strings.blob
    largest = np.flatnonzero(weight)
    largest = largest[np.argsort(-known.values.elements[pairs.argument[largest]], kind="stable")]
    return any(_is_mirrored(known, found, *pair) for pair in zip(
        pairs.argument[largest[:MAX_EVIDENCE]].tolist(), pairs.value[largest[:MAX_EVIDENCE]].tolist(), strict=True
    ))  # fmt: skip


def _is_mirrored(known: DataflowGraph, found: FirstUse, argument: int, result: int) -> bool:
    """Whether what the argument was first joined with is read again on the way from there to its update.

    The derivative of `x @ w` in w is made from x.
    """
    values = known.values
    first, last = (int(bound[0]) for bound in found.begin(np.array([argument], np.int32)))
    joint = int(found.position[first])
    reader = values.used_value
    with_it = np.unique(reader[values.use == joint])
    with_it = with_it[(values.elements[with_it] > 1) & ~np.isin(with_it, found.value[first:last])]
    between = known.forward.reach(known.at(np.array([joint]))) & known.backward.reach(np.array([result]))
    again = values.use[np.isin(reader, with_it)]
    again = again[(again != joint) & ~np.isin(again, found.position[first:last])]
    return bool(between[known.at(again)].any())


def _divide_into_passes(
    known: DataflowGraph,
    program: Program,
    pairs: InputOutputPairs,
    weight: Mask,
    found: FirstUse,
    update: UpdateArithmetic,
    owner: I32,
) -> TrainingStep:
    values, n = known.values, len(known.values)
    # What a loop over steps hands to its next turn does not make that turn's forward pass come of this one's update.
    turn = known.without(update.inside, update.inside)
    first, last = found.begin(pairs.argument[weight])
    joints = known.at(found.position[first[first < last]])
    of_weights = UpdateArithmetic.of(values, pairs.value[weight])
    source = of_weights.sources(program.op, update.reading) & turn.forward.reach(joints)[:n]
    before = turn.backward.reach(joints)
    source &= ~before[:n]
    follows = turn.forward.reach(np.flatnonzero(source))
    leaves = values.result[values.result >= 0]
    is_pair = np.zeros(n, dtype=bool)
    is_pair[pairs.value] = True
    leaves = leaves[(values.argument[leaves] < 0) & ~follows[leaves] & ~is_pair[leaves]]
    forward = _forward_nodes(turn, joints, leaves)
    source &= ~forward[:n]
    needed = turn.backward.reach(np.flatnonzero(source))
    backward = needed & ~forward
    position = np.r_[values.producer, np.arange(known.length, dtype=np.int32)]
    end = int(position[forward & needed].max(initial=-1))
    early = np.r_[contains_text(program.scope, b"jvp(") | (np.arange(known.length) <= end), False]
    early &= ~np.r_[contains_text(program.scope, b"transpose("), False]
    late = turn.forward.reach(np.flatnonzero(backward & ~early[position]))
    backward &= ~early[position] | late
    forward |= needed & ~backward
    results = turn.backward.reach(pairs.value)
    phase = np.select(
        [forward, backward, results | follows],
        [TrainingPhase.FORWARD, TrainingPhase.BACKWARD, TrainingPhase.UPDATE],
        TrainingPhase.NONE,
    ).astype(np.uint8)
    # An instruction that does several things at once belongs to the last pass that any of them belongs to.
    np.maximum.at(phase, known.at(values.producer[values.bundled[1]]), phase[values.bundled[1]])
    gradient = source | (of_weights.inside & follows[:n] & ~needed[:n] & ~update.of_arguments(pairs.argument))
    return TrainingStep(pairs, weight, owner, phase, follows, gradient, update.reading)


def _forward_nodes(turn: DataflowGraph, joints: I32, leaves: I32) -> Mask:
    """What results such as the loss come of, and where weights are first joined: per node.

    A weight that the forward pass does not need, as of a sum, is first joined in the backward pass. Where the
    results tell of most weights' joints, joints after the last of those are not counted.
    """
    by_results = turn.backward.reach(leaves)
    told = by_results[joints]
    if 2 * np.count_nonzero(told) >= len(told):
        joints = joints[~told & (joints <= joints[told].max(initial=-1))]
    return turn.backward.reach(joints) | by_results if len(joints) else by_results
