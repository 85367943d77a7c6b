"""Values of a training step that scale with its batch, and those of the size of its weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.dataflow.graph import CsrGraph, DataflowGraph, copied_from
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import value_roles
from tb_memplugin.model.arrays import I32, I64, Mask, largest_per, marked
from tb_memplugin.model.dataflow import DataflowValues, Derivation, ProductKind
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording

BOTH_PASSES = (TrainingPhase.FORWARD, TrainingPhase.BACKWARD)
WEIGHTS = (Role.PARAMETER, Role.GRADIENT, Role.OPTIMIZER_STATE)


@dataclass(frozen=True, eq=False)
class BatchValues:
    """Rows that scale with the batch, rows of weight gradients, and the arguments that are trained."""

    scaled: I64
    gradients: I64
    stacked: I64  # of `gradients`: those that a loop over layers collects
    trained: I64  # rows of arguments
    invariant: I64  # rows computed from weights alone, outside of loops
    end: int  # the position after the last operation of both passes


def batch_values(
    recording: Recording, graph: DataflowGraph, step: TrainingStep, passes: ProgramPasses, inputs: I32, batch: int
) -> BatchValues:
    """Tell values that have one part per example from those that are sums over all examples.

    All that the forward and backward passes compute from the inputs has one part per example, except the gradients of
    the weights. What depends on such a gradient belongs to the update.
    """
    values, n, value = graph.values, len(graph.values), passes.value
    gradient = _gradients(values, step)
    after = step.turn.forward.reach(np.r_[np.flatnonzero(gradient), step.pairs.value])[:n]
    after = gradient | after & ~np.isin(step.phase[:n], BOTH_PASSES)  # batch norm reads the gradient of its scale
    examples = step.turn.forward.reach(inputs)[:n] & ~after & (values.elements > 1) & (values.argument < 0)
    examples &= values.elements % batch == 0
    within = _within_passes(values, step, passes)
    per_row = value >= 0
    scaled = per_row & (examples & within)[value] & ~np.isin(value_roles(recording), WEIGHTS)
    may_scale = per_row & ~after[value] & ~passes.is_argument & (values.elements[value] % batch == 0)
    scaled = _with_shared_memory(recording, scaled) & may_scale
    of_weights = per_row & (gradient[value] | (value_roles(recording) == Role.GRADIENT)) & ~passes.is_argument & ~scaled
    is_trained = marked(n, step.pairs.argument[step.weight])
    carried = np.zeros(n, dtype=bool)
    carried[values.loop_carried[1]] = True
    stacked = _with_shared_memory(recording, of_weights & carried[value]) & of_weights
    program = graph.program
    own = program.computation.isin({program.entry_computation})
    invariant = per_row & within[value] & own[passes.made] & (value_roles(recording) == Role.PARAMETER)
    last = values.producer[(examples & within) | (gradient & within)]
    return BatchValues(
        np.flatnonzero(scaled),
        np.flatnonzero(of_weights),
        np.flatnonzero(stacked),
        np.flatnonzero(per_row & is_trained[value] & passes.is_argument),
        np.flatnonzero(invariant & ~passes.is_argument),
        int(last.max(initial=-1)) + 1,
    )


def accumulates_gradients(recording: Recording, graph: DataflowGraph, step: TrainingStep) -> bool:
    """Return whether a loop over parts of the batch, which contains both passes, sums up gradients for the update."""
    program, n = graph.program, len(graph.values)
    computation, phase = program.computation.codes, step.phase[n:]
    made = graph.values.producer[step.gradient]
    loops = np.intersect1d(made[made > 0], np.flatnonzero(program.op.isin({"while"})))
    for loop in loops.tolist():
        first = int(np.argmax(computation == computation[loop - 1]))
        if all(_is_mostly_within(phase == one, first, loop) for one in BOTH_PASSES):
            return True
    return False


def _is_mostly_within(positions: Mask, first: int, stop: int) -> bool:
    return bool(2 * np.count_nonzero(positions[first:stop]) > np.count_nonzero(positions))


def cast_bytes(recording: Recording, graph: DataflowGraph) -> I64:
    """Return the sizes of the bf16 copies that a TPU program would make of f32 weights in front of a loop.

    TPUs compute products in bf16. Each cast is a part of the product that reads it, except in a loop, in front of which
    XLA moves the casts of what the loop does not change.
    """
    values, products, origin = graph.values, graph.values.products, copied_from(graph.values)
    table = recording.allocations
    if recording.backend is not Backend.TPU:
        return np.empty(0, dtype=np.int64)
    wide = np.flatnonzero(
        (value_roles(recording) == Role.PARAMETER) & table.shape.where(lambda text: text[:4] == "f32[")
    )
    sides = products.value[products.kind[products.product] == ProductKind.PRODUCT]
    weights = np.intersect1d(graph.value[wide], origin[sides])
    weights = weights[values.argument[weights] >= 0]
    copied = np.unique(origin[(values.shape != values.shape[origin]) & (values.elements == values.elements[origin])])
    sizes: I64 = 2 * values.elements[np.setdiff1d(weights, copied)]
    return sizes


def _gradients(values: DataflowValues, step: TrainingStep) -> Mask:
    """Mark the weights' gradients, and the values that they are parts, casts or sums over devices of."""
    pairs, backward = values.derivations, step.phase[: len(values)] == TrainingPhase.BACKWARD
    kept = (pairs.kind == Derivation.IN_PLACE) | (pairs.kind == Derivation.PART) | (pairs.steps == 0)
    kept &= backward[pairs.source] & (values.argument[pairs.source] < 0)
    return CsrGraph.of(pairs.target[kept], pairs.source[kept], len(values)).reach(np.flatnonzero(step.gradient))


def _within_passes(values: DataflowValues, step: TrainingStep, passes: ProgramPasses) -> Mask:
    """Mark the values of the forward and backward passes, by data flow or by JAX's names."""
    named = passes.within(Pass.FORWARD) | passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)
    position = np.maximum(values.producer, 0)
    phase, n = step.phase, len(values)
    found: Mask = np.isin(phase[n + position], BOTH_PASSES) | np.isin(phase[:n], BOTH_PASSES) | named[position]
    return found & (values.producer >= 0)


def _with_shared_memory(recording: Recording, rows: Mask) -> Mask:
    """Add the rows that share a row's memory and are as large: a loop's stack before the loop, a cleared buffer."""
    table = recording.allocations
    memory, size = table.canonical.astype(np.int64), table.size
    largest = largest_per(memory[rows], size[rows], len(table), -1)
    found: Mask = rows | (largest[memory] == size) & (size > 0)
    return found
