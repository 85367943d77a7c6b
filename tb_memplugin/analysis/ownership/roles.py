"""What each buffer is for: from data flow, not from words in names (training.py tells where names break ties)."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.dataflow.first_use import SEVERAL, FirstUse, first_use, owning_argument
from tb_memplugin.analysis.dataflow.graph import CsrGraph, DataflowGraph, Mask, dataflow_graph
from tb_memplugin.analysis.dataflow.input_output_pairs import InputOutputPairs, input_output_pairs
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep, training_step
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.sibling_arguments import sibling_arguments
from tb_memplugin.analysis.ownership.torch_roles import torch_roles
from tb_memplugin.model.arrays import I32, U8
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

PASS_THROUGH = {
    "parameter",
    "while",
    "conditional",
    "call",
    "async-start",
}  # they make nothing, but name what is carried


@memoize
def roles(recording: Recording) -> U8:
    """Per row of `allocations`: its Role.

    In a training step a parameter is an argument that the forward pass reads and that comes back updated; optimizer
    state comes back updated and the forward pass never reads it; an input does not come back. An activation is made
    in the forward pass and read in the backward pass; a gradient is what updates read; the rest is temporary. What
    is made of one parameter alone, such as a copy in bfloat16, counts as that parameter.
    State is what one call hands to the next without a gradient: a cache of keys and values, a running mean.

    A program that returns gradients, and leaves the update to another, has parameters and activations too.

    In other programs state is an argument that comes back, donated or written in place. Of the others, a parameter
    is one that is first joined, in another shape, with what was computed from several; integers are inputs; and what
    may be either, such as both sides of a first product, is unknown. There one hint is taken of names: a leaf that
    differs from a parameter's by a number only is a parameter, and what is first joined with such alone is an input.

    Memory that is held for the whole program has the role of what it is held for: the argument, the result or the
    constant. Of tensors, stacks and lifetimes tell (tensor_roles.py); of anything else, roles are
    as their source tells them.
    """
    if recording.kind.has_tensor_stacks:
        return torch_roles(recording)
    known, told, program, rows = (
        dataflow_graph(recording),
        recording.allocations.role,
        recording.program,
        value_roles(recording),
    )
    if known is None or program is None or program.value is None:
        return told
    region = recording.allocations.region
    held_for = np.full(len(recording.regions), Role.UNKNOWN, dtype=np.uint8)
    is_argument = (program.value >= 0) & (known.values.argument[program.value] >= 0)
    held_for[region[is_argument]] = rows[is_argument]
    kind = recording.regions.kind[region]
    return np.select(
        [kind == RegionKind.TEMPORARY, (kind & RegionKind.PARAMETER) != 0], [rows, held_for[region]], told
    ).astype(np.uint8)


@memoize
def value_roles(recording: Recording) -> U8:
    """The same of the value that each row holds, whatever its memory is held for: results and constants are temporary.

    An activation may lie where the new weights will be written, and costs nothing there.
    """
    known, program = dataflow_graph(recording), recording.program
    if known is None or program is None or program.value is None:
        return recording.allocations.role
    of_value = _roles_of_values(recording, known, program.op)
    return np.where(program.value >= 0, of_value[program.value], Role.UNKNOWN).astype(np.uint8)


def _roles_of_values(recording: Recording, known: DataflowGraph, op: Text) -> U8:
    """Per value. Those of results and constants are left out: their memory tells."""
    values, pairs, step = known.values, input_output_pairs(recording), training_step(recording)
    role = np.full(len(values), Role.TEMPORARY, dtype=np.uint8)
    arguments = np.flatnonzero(values.argument >= 0).astype(np.int32)
    if step is None:
        role[arguments] = _roles_without_training(known, arguments, pairs, sibling_arguments(recording, arguments))
    else:
        pairs = step.pairs
        _mark_roles_by_pass(known, op, step, role)
        role[arguments] = Role.INPUT
        role[pairs.argument] = _roles_of_updated_arguments(known, step)
    # What a loop carries of an argument that comes back is that argument.
    carried = _shared_memory(values)
    for handed in (Role.PARAMETER, Role.OPTIMIZER_STATE, Role.STATE):
        if pairs.argument.size:
            role[carried.reach(pairs.argument[role[pairs.argument] == handed])] = handed
    return role


def _roles_of_updated_arguments(known: DataflowGraph, step: TrainingStep) -> U8:
    """Of the arguments that come back from a training step."""
    pairs, found = step.pairs, first_use(known, step.owner, ~step.updating)
    in_forward = step.phase[known.at(found.position)] == TrainingPhase.FORWARD
    read = np.isin(pairs.argument, found.argument[in_forward])
    by_gradient = step.follows[pairs.value] & (known.values.floating[pairs.argument] != 0)
    return np.select(
        [step.weight | (read & by_gradient), read], [Role.PARAMETER, Role.STATE], Role.OPTIMIZER_STATE
    ).astype(np.uint8)


def _mark_roles_by_pass(known: DataflowGraph, op: Text, step: TrainingStep, role: U8) -> None:
    """Activations, gradients, and what passes make of a parameter alone."""
    values, n = known.values, len(known.values)
    reader = values.used_value
    made = _making_pass(values, op, step)
    when, updating = step.phase[known.at(values.use)], step.updating
    # Where the compiler fused a gradient's product with the update, what goes into the product is read backward.
    updates = np.zeros(known.length, dtype=bool)
    updates[values.use[updating]] = True
    fused = updates[values.use] & (when == TrainingPhase.UPDATE) & (values.elements[reader] > 1)
    backward = ~updating & ((when == TrainingPhase.BACKWARD) | fused)
    handed_on = CsrGraph.of(values.loop_carried[1], values.loop_carried[0], n)
    activation = handed_on.reach(reader[backward]) & (made == TrainingPhase.FORWARD) & (values.argument < 0)
    memory = _shared_memory(values)
    owner = step.owner[:n]
    weights = np.zeros(n + 1, dtype=bool)
    weights[step.pairs.argument[step.weight]] = True
    role[memory.reach(np.flatnonzero(activation))] = Role.ACTIVATION
    role[memory.reach(np.flatnonzero(step.gradient & (made != TrainingPhase.FORWARD)))] = Role.GRADIENT
    role[weights[owner] & (owner >= 0) & ((made == TrainingPhase.FORWARD) | (made == TrainingPhase.BACKWARD))] = (
        Role.PARAMETER
    )


def _making_pass(values: DataflowValues, op: Text, step: TrainingStep) -> U8:
    """Per value the pass that makes it."""
    n = len(values)
    makes = ~np.array([op.strings[i] in PASS_THROUGH for i in range(len(op.strings))] + [True])[op.codes]
    by_instruction = (values.producer >= 0) & makes[values.producer]
    by_instruction[values.bundled[1]] = False
    made: U8 = np.where(by_instruction, step.phase[n + np.maximum(values.producer, 0)], step.phase[:n]).astype(np.uint8)
    return made


def _shared_memory(values: DataflowValues) -> CsrGraph:
    """Both ways between what one memory serves in turn: a loop's carry, and what is written over in place."""
    in_place = values.derivations.kind == Derivation.IN_PLACE
    one = np.r_[values.loop_carried[0], values.derivations.source[in_place]].astype(np.int32)
    other = np.r_[values.loop_carried[1], values.derivations.target[in_place]].astype(np.int32)
    same = values.shape[one] == values.shape[other]
    one, other = one[same], other[same]
    return CsrGraph.of(np.r_[one, other], np.r_[other, one], len(values))


def _roles_without_training(known: DataflowGraph, arguments: I32, pairs: InputOutputPairs, family: I32) -> U8:
    """Of a program that is no training step: per argument. `family` is that of families.py."""
    values = known.values
    owner = owning_argument(known, around=True)
    found = first_use(known, owner, np.ones(len(values.use), dtype=bool))
    reader = values.used_value
    several = (owner[reader] == SEVERAL) & (values.elements[reader] > 1)
    is_index = np.zeros(len(values) + 1, dtype=bool)
    is_index[arguments] = values.floating[arguments] == 0
    indexed = is_index[owner[reader]] & (owner[reader] >= 0)
    late, beside_index = (_position_mask(values.use[which], known.length) for which in (several, indexed))
    made = np.zeros(known.length, dtype=np.int64)
    makes = np.flatnonzero(values.producer >= 0)
    made[values.producer[makes]] = values.elements[makes]
    reshaped = made[found.position] != values.elements[found.value]
    certain = (reshaped & (late | beside_index)[found.position])[found.joined]
    joined = found.argument[found.joined]
    weights = joined[certain & (np.diff(joined, prepend=-1) != 0)]  # by the first joint: data may be joined again later
    returned = pairs.argument[(pairs.donated | pairs.in_place) != 0]
    alone = ~np.isin(arguments, found.argument[found.joined])
    told = np.select(
        [
            np.isin(arguments, returned),
            is_index[arguments] | alone,
            np.isin(arguments, weights),
        ],
        [Role.STATE, Role.INPUT, Role.PARAMETER],
        Role.UNKNOWN,
    ).astype(np.uint8)
    related = family[(told == Role.PARAMETER) & (family >= 0)]
    told[(told == Role.UNKNOWN) & np.isin(family, related)] = Role.PARAMETER
    first, last = found.joined_only.begin(arguments)
    position = np.append(found.joined_only.position, -1)[np.where(first < last, first, -1)]
    with_weights = _position_mask(
        found.position[np.isin(found.argument, arguments[told == Role.PARAMETER])], known.length
    )
    with_others = late | _uses_several_unknown(found, arguments[told == Role.UNKNOWN], known.length)
    fed = (told == Role.UNKNOWN) & (position >= 0) & (with_weights & ~with_others)[position]
    told[fed] = Role.INPUT
    return told


def _uses_several_unknown(found: FirstUse, unknown: I32, length: int) -> Mask:
    """Per position: whether two of these arguments, or more, are read there."""
    of_unknown = np.isin(found.argument, unknown)
    pairs = np.unique(np.stack([found.position[of_unknown], found.argument[of_unknown]]), axis=1)
    several: Mask = np.bincount(pairs[0], minlength=length) > 1
    return several


def _position_mask(positions: I32, length: int) -> Mask:
    found = np.zeros(length, dtype=bool)
    found[positions] = True
    return found
