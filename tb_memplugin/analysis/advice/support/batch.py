"""The batch of a training step: its dimension in the inputs, and the values that scale with it."""

from dataclasses import dataclass
from math import gcd, isqrt
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.support.passes import ProgramPasses, largest_made
from tb_memplugin.analysis.dataflow.graph import CsrGraph, DataflowGraph, copied_from
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import value_roles
from tb_memplugin.model.arrays import I32, I64, Mask, dimensions, largest_per, marked
from tb_memplugin.model.dataflow import DataflowValues, Derivation, ProductKind
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording


def rows_of_products(recording: Recording, graph: DataflowGraph, step: TrainingStep) -> I64:
    """Return multiples of the batch: the numbers of rows of the forward pass's products of weights with data.

    A product of [m, k] and [k, n] has sqrt(m * k * m * n / (k * n)) = m rows, which divide its side and its result. For
    a convolution this may be no number of rows; what its side and its result have in common is a multiple of the batch.
    """
    values, products = graph.values, graph.values.products
    weight, data = _sides(recording, graph, step)
    result = largest_made(values, values.elements, graph.length)
    forward = (step.phase[len(values) + products.position] == TrainingPhase.FORWARD) & (
        products.kind == ProductKind.PRODUCT
    )
    found = set[int]()
    for k in np.flatnonzero(forward & (weight > 0) & (data > 0)).tolist():
        side, made_here = int(data[k]), int(result[products.position[k]])
        square, rest = divmod(side * made_here, int(weight[k]))
        if rest == 0 and (root := isqrt(square)) > 1 and root * root == square:
            common = gcd(side, made_here)
            found.add(root if common % root == 0 else common)
    return np.array(sorted(found), dtype=np.int64)


def _sides(recording: Recording, graph: DataflowGraph, step: TrainingStep) -> tuple[I64, I64]:
    """Return the elements of each product's weight and of its other side, 0 where a product has no such side."""
    values, products, n = graph.values, graph.values.products, len(graph.values)
    owner, of_weights = step.owner[:n], np.zeros(n + 1, dtype=bool)
    of_weights[graph.value[(value_roles(recording) == Role.PARAMETER) & (graph.value >= 0)]] = True
    of_weights[n] = False
    is_weight = of_weights[:n] | (owner >= 0) & of_weights[np.minimum(owner, n)]
    size, weight = np.zeros((2, len(products)), dtype=np.int64), np.zeros((2, len(products)), dtype=bool)
    order = np.argsort(values.elements[products.value], kind="stable")  # the largest of a side's values counts
    side, product, value = products.side[order], products.product[order], products.value[order]
    size[side, product], weight[side, product] = values.elements[value], is_weight[value]
    one, left = weight[0] ^ weight[1], weight[0]
    return np.where(one, np.where(left, size[0], size[1]), 0), np.where(one, np.where(left, size[1], size[0]), 0)


def score_elements(graph: DataflowGraph, step: TrainingStep, passes: ProgramPasses, inputs: I64) -> I64:
    """Return the numbers of elements of scores: products of values computed from the inputs, larger than both sides.

    Attention multiplies queries by keys, and the softmax of the scores stays in f32 in most models.
    """
    values, products = graph.values, graph.values.products
    result = largest_made(values, values.elements, graph.length)[products.position]
    sides = _largest_of_sides(graph, step, inputs, values.elements)
    attends = passes.does("dot_general") & passes.within(Pass.FORWARD) & passes.is_named
    scores = (
        attends[products.position]
        & (products.kind == ProductKind.PRODUCT)
        & (sides > 0).all(axis=0)
        & (result > sides.max(axis=0))
    )
    return np.unique(result[scores])


def _largest_of_sides(graph: DataflowGraph, step: TrainingStep, inputs: I64, amount: I64) -> I64:
    """Return the largest amount of each product's left and right values that are computed from the inputs, else 0."""
    products, sides = graph.values.products, np.zeros((2, len(graph.values.products)), dtype=np.int64)
    at = np.flatnonzero(step.turn.forward.reach(graph.value[inputs])[products.value])
    np.maximum.at(sides, (products.side[at], products.product[at]), amount[products.value[at]])
    return sides


def is_mixed(recording: Recording, graph: DataflowGraph, step: TrainingStep, inputs: I64, size: int) -> bool:
    """Return whether a product of two values computed from the inputs pairs all examples with each other.

    Its result then has the dimension once more than each side: [heads, time, time] from [time, heads, width]. Where a
    shape is not known, as of values in other memory, the numbers of elements tell: [n, k] and [k, n] make [n, n].
    """
    values, products, table = graph.values, graph.values.products, recording.allocations
    times = np.array([dimensions(text).count(size) for text in table.shape.strings])
    of_value = np.zeros(len(values), dtype=np.int64)
    rows = np.flatnonzero(graph.value >= 0)
    of_value[graph.value[rows]] = times[table.shape.codes[rows]]
    of_result = largest_made(values, of_value, graph.length)[products.position]
    sides = _largest_of_sides(graph, step, inputs, of_value)
    # A result as large as a side may only be split otherwise: [batch, time, 64 * heads] into [batch, heads, time, 64].
    elements = largest_made(values, values.elements, graph.length)[products.position]
    split = np.zeros(len(products), dtype=bool)
    split[products.product[values.elements[products.value] == elements[products.product]]] = True
    left, right = _largest_of_sides(graph, step, inputs, values.elements)
    square = (elements == size**2) & (left == right) & (left > 0) & (left % size == 0)
    forward = step.phase[len(values) + products.position] == TrainingPhase.FORWARD
    pairs = (sides > 0).all(axis=0) & ~split & (of_result > sides.max(axis=0))
    return bool(((pairs | square) & forward & (products.kind == ProductKind.PRODUCT)).any())


MAX_DIMENSION = 2  # steps or parts may come first, then time, then the batch


class Batch(NamedTuple):
    """A dimension that inputs share: its number, its size on each device, and the number of devices that split it."""

    dimension: int
    size: int
    devices: int
    rows: I64  # the inputs that have it

    @property
    def whole(self) -> int:
        return self.size * self.devices


def find_batch(recording: Recording, graph: DataflowGraph, step: TrainingStep, inputs: I64) -> Batch | None:
    """Return the batch dimension of the inputs, which are rows.

    The rows of a weight's product in the forward pass are examples, or examples times positions in time or space. So
    the batch divides the number of rows of every product, but a time that a scan runs over does not. Most activations
    begin with the batch; a mask, a random key or positions have other dimensions.

    Return None if a product combines the examples with each other, as attention combines positions in time; for a batch
    of one example; and for a graph, whose examples are nodes.
    """
    shapes = {row: dimensions(recording.allocations.shape[row]) for row in inputs.tolist()}
    counts, leading = rows_of_products(recording, graph, step), _leading_dimensions(recording, graph, step, inputs)
    found: list[tuple[float, int, int, int, Batch]] = []
    for nth in range(MAX_DIMENSION + 1):
        for size in sorted({shape[nth] for shape in shapes.values() if len(shape) > nth and shape[nth] > 1}):
            rows = [row for row, shape in shapes.items() if len(shape) > nth and shape[nth] == size]
            divides = float(np.mean(counts % size == 0)) if len(counts) else 1.0
            largest = max(rows, key=lambda row: int(recording.allocations.size[row]))
            devices = _devices(graph, largest, nth)
            found.append((divides, leading.get(size, 0), -nth, len(rows), Batch(nth, size, devices, np.array(rows))))
    best = max(found, key=lambda entry: entry[:4])[4] if found else None
    if best is None or is_mixed(recording, graph, step, inputs, best.size):
        return None
    single = any(shapes[row][0] == 1 for row in best.rows.tolist())
    return None if single or _has_edges(graph, best, shapes) else best


def _leading_dimensions(recording: Recording, graph: DataflowGraph, step: TrainingStep, inputs: I64) -> dict[int, int]:
    """Count the arrays that the forward pass computes from the inputs, by their first dimension.

    Values that loops carry do not count, because a scan stacks the values of its iterations.
    """
    shape = recording.allocations.shape
    values, n = graph.values, len(graph.values)
    computed = step.turn.forward.reach(graph.value[inputs])[:n] & (step.phase[:n] == TrainingPhase.FORWARD)
    computed &= values.argument[copied_from(values)] < 0  # no copies of arguments
    computed[np.concatenate(values.loop_carried)] = False
    known = (graph.value >= 0) & (shape.codes >= 0)
    count = np.bincount(shape.codes[known & computed[graph.value]], minlength=len(shape.strings))
    found: dict[int, int] = {}
    for code in np.flatnonzero(count).tolist():
        if sizes := dimensions(shape.strings[code]):
            found[sizes[0]] = found.get(sizes[0], 0) + int(count[code])
    return found


def _has_edges(graph: DataflowGraph, batch: Batch, shapes: dict[int, list[int]]) -> bool:
    """Return whether an input numbers the examples, as the edges of a graph do: integers in a longer dimension."""
    shared = {size for row in batch.rows.tolist() for size in shapes[row]}
    others = [row for row, shape in shapes.items() if shape and max(shape) > batch.size and shared.isdisjoint(shape)]
    return bool((graph.values.floating[graph.value[others]] == 0).any()) if others else False


def _devices(graph: DataflowGraph, row: int, nth: int) -> int:
    """Return the number of devices that split a dimension of an argument."""
    shardings = graph.program.shardings
    return shardings.parts_of(int(graph.values.argument[graph.value[row]]), nth) if shardings is not None else 1


def used_inputs(graph: DataflowGraph, step: TrainingStep, rows: I64) -> tuple[I64, I32]:
    """Return the rows of arguments from which weights are updated or gradients computed, and the rows' values."""
    needed = step.turn.backward.reach(np.r_[step.pairs.value[step.weight], np.flatnonzero(step.gradient)])
    rows = rows[needed[graph.value[rows]]]
    return rows, graph.value[rows]


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
    """Distinguish values with one part per example from values that are sums over all examples.

    All values that both passes compute from the inputs have one part per example, except the weights' gradients. Values
    that depend on such a gradient belong to the update.
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


def accumulates_gradients(graph: DataflowGraph, step: TrainingStep) -> bool:
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


def cast_bytes(recording: Recording, graph: DataflowGraph, step: TrainingStep, role: Role) -> I64:
    """Return the sizes of the bf16 copies that a TPU program would make of f32 arguments of a role before a loop.

    TPUs compute products in bf16. Each cast is a part of the product that reads it, except in a loop: XLA moves the
    casts of values that the loop does not change to before the loop.
    """
    values, products, origin = graph.values, graph.values.products, copied_from(graph.values)
    table = recording.allocations
    if recording.backend is not Backend.TPU:
        return np.empty(0, dtype=np.int64)
    wide = np.flatnonzero((value_roles(recording) == role) & table.dtype.isin({"f32"}))
    multiplied = products.kind == ProductKind.PRODUCT
    if role == Role.INPUT:  # the backward pass computes with labels before it multiplies
        multiplied &= step.phase[len(values) + products.position] == TrainingPhase.FORWARD
    read = np.intersect1d(graph.value[wide], origin[products.value[multiplied[products.product]]])
    read = read[values.argument[read] >= 0]
    copied = np.unique(origin[(values.shape != values.shape[origin]) & (values.elements == values.elements[origin])])
    sizes: I64 = 2 * values.elements[np.setdiff1d(read, copied)]
    return sizes


def _gradients(values: DataflowValues, step: TrainingStep) -> Mask:
    """Mark the weights' gradients, and the values whose parts, casts or sums over devices they are."""
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
    """Add rows that are as large and share a row's memory, such as a loop's stack before the loop, a cleared buffer."""
    table = recording.allocations
    memory, size = table.canonical.astype(np.int64), table.size
    largest = largest_per(memory[rows], size[rows], len(table), -1)
    found: Mask = rows | (largest[memory] == size) & (size > 0)
    return found
