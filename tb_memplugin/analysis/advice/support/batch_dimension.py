"""The batch dimension of a training step's inputs."""

from __future__ import annotations

import re
from math import isqrt
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.copies import copied_from
from tb_memplugin.analysis.dataflow.graph import DataflowGraph
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep
from tb_memplugin.analysis.ownership.roles import value_roles
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.dataflow import ProductKind
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording

DIMENSIONS = re.compile(r"\w+\[(\d[\d,]{0,200})\]")
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

    The rows of a weight's product in the forward pass are examples, or examples and their positions in time or space.
    So the batch divides the number of rows of every product. A time that a scan runs over does not. Most activations
    begin with the batch; a mask, a random key or positions have other dimensions.

    Return None where a product combines the examples with each other, as attention does with the positions in time.
    """
    shapes = {row: dimensions(recording.allocations.shape[row]) for row in inputs.tolist()}
    counts, leading = _rows_of_products(recording, graph, step), _leading_dimensions(recording, graph, step, inputs)
    found: list[tuple[float, float, int, int, Batch]] = []
    for nth in range(MAX_DIMENSION + 1):
        for size in sorted({shape[nth] for shape in shapes.values() if len(shape) > nth and shape[nth] > 1}):
            rows = [row for row, shape in shapes.items() if len(shape) > nth and shape[nth] == size]
            divides = float(np.mean(counts % size == 0)) if len(counts) else 1.0
            largest = max(rows, key=lambda row: int(recording.allocations.size[row]))
            devices = _devices(recording.program, graph, largest, nth)
            found.append((divides, leading.get(size, 0.0), -nth, len(rows), Batch(nth, size, devices, np.array(rows))))
    best = max(found, key=lambda entry: entry[:4])[4] if found else None
    return None if best is None or _is_mixed(recording, graph, step, inputs, best.size) else best


def _leading_dimensions(
    recording: Recording, graph: DataflowGraph, step: TrainingStep, inputs: I64
) -> dict[int, float]:
    """Return the bytes that the forward pass computes from the inputs in arrays with each first dimension."""
    program, table = recording.program, recording.allocations
    assert program is not None and program.value is not None
    computed = _computed(graph, step, program.value[inputs])
    computed &= step.phase[: len(graph.values)] == TrainingPhase.FORWARD
    rows = np.flatnonzero((program.value >= 0) & computed[program.value])
    size = np.bincount(table.shape.codes[rows], table.size[rows], minlength=len(table.shape.strings))
    found: dict[int, float] = {}
    for code in np.flatnonzero(size).tolist():
        if shape := dimensions(table.shape.strings[code]):
            found[shape[0]] = found.get(shape[0], 0.0) + float(size[code])
    return found


def _computed(graph: DataflowGraph, step: TrainingStep, inputs: I32) -> Mask:
    """Mark the values that are computed from these, other than copies of arguments."""
    values = graph.values
    return step.turn.forward.reach(inputs)[: len(values)] & (values.argument[copied_from(values)] < 0)


def _is_mixed(recording: Recording, graph: DataflowGraph, step: TrainingStep, inputs: I64, size: int) -> bool:
    """Return whether a product of two values computed from the inputs pairs all examples with each other.

    Its result then has the dimension once more than each side: [heads, time, time] from [time, heads, width].
    """
    values, products, program, table = graph.values, graph.values.products, recording.program, recording.allocations
    assert program is not None and program.value is not None
    times = np.array([dimensions(table.shape.strings[code]).count(size) for code in range(len(table.shape.strings))])
    of_value = np.zeros(len(values), dtype=np.int64)
    rows = np.flatnonzero(program.value >= 0)
    of_value[program.value[rows]] = times[table.shape.codes[rows]]
    of_result = np.zeros(graph.length, dtype=np.int64)
    made = np.flatnonzero(values.producer >= 0)
    np.maximum.at(of_result, values.producer[made], of_value[made])
    computed = step.turn.forward.reach(program.value[inputs])[: len(values)]
    sides, known = np.zeros((2, len(products)), dtype=np.int64), np.zeros((2, len(products)), dtype=bool)
    at = np.flatnonzero(computed[products.value])
    np.maximum.at(sides, (products.side[at], products.product[at]), of_value[products.value[at]])
    known[products.side[at], products.product[at]] = True
    pairs = known.all(axis=0) & (sides > 0).all(axis=0) & (products.kind == ProductKind.PRODUCT)
    pairs &= step.phase[len(values) + products.position] == TrainingPhase.FORWARD
    return bool((pairs & (of_result[products.position] > sides.max(axis=0))).any())


def _rows_of_products(recording: Recording, graph: DataflowGraph, step: TrainingStep) -> I64:
    """Return the numbers of rows of the products of weights with data in the forward pass, where these are certain.

    A product of [m, k] and [k, n] has sqrt(m * k * m * n / (k * n)) = m rows.
    """
    values, products = graph.values, graph.values.products
    weight, data = _sides(recording, graph)
    forward = (step.phase[len(values) + products.position] == TrainingPhase.FORWARD) & (
        products.kind == ProductKind.PRODUCT
    )
    result = np.zeros(graph.length, dtype=np.int64)
    made = np.flatnonzero(values.producer >= 0)
    np.maximum.at(result, values.producer[made], values.elements[made])
    found = set[int]()
    for k in np.flatnonzero(forward & (weight > 0) & (data > 0)).tolist():
        square, rest = divmod(int(data[k]) * int(result[products.position[k]]), int(weight[k]))
        if rest == 0 and (root := isqrt(square)) > 1 and root * root == square:
            found.add(root)
    return np.array(sorted(found), dtype=np.int64)


def _sides(recording: Recording, graph: DataflowGraph) -> tuple[I64, I64]:
    """Return the elements of each product's weight and of its other side, 0 where a product has no such side."""
    values, products, n = graph.values, graph.values.products, len(graph.values)
    value, role = recording.program.value if recording.program else None, value_roles(recording)
    is_weight = np.zeros(n, dtype=bool)
    if value is not None:
        is_weight[value[(role == Role.PARAMETER) & (value >= 0)]] = True
    found = np.zeros((2, len(products)), dtype=np.int64)
    for side in (0, 1):
        of_side = products.side == side
        np.maximum.at(found[side], products.product[of_side], values.elements[products.value[of_side]])
    weight = np.zeros((2, len(products)), dtype=bool)
    weight[products.side[is_weight[products.value]], products.product[is_weight[products.value]]] = True
    one = weight[0] ^ weight[1]
    left = weight[0]
    return np.where(one, np.where(left, found[0], found[1]), 0), np.where(one, np.where(left, found[1], found[0]), 0)


def _devices(program: Program | None, graph: DataflowGraph, row: int, nth: int) -> int:
    """Return the number of devices that split a dimension of an argument."""
    if program is None or program.shardings is None or program.value is None:
        return 1
    shardings, leaf = program.shardings, int(graph.values.argument[program.value[row]])
    if not 0 <= leaf < len(shardings.copies):
        return 1
    if (code := int(shardings.code[leaf])) < 0:
        return max(program.devices // max(int(shardings.copies[leaf]), 1), 1) if nth == 0 else 1
    split = shardings.named[code].dimensions
    return int(np.prod([axis.size for axis in split[nth]], dtype=np.int64)) if nth < len(split) else 1


def dimensions(shape: str) -> list[int]:
    """Return the dimensions of an array's shape text; none for a scalar or a tuple."""
    found = DIMENSIONS.match(shape)
    return [int(number) for number in found[1].split(",") if number and len(number) < 16] if found else []


def used_inputs(recording: Recording, graph: DataflowGraph, step: TrainingStep, rows: I64) -> tuple[I64, I32]:
    """Return those rows of arguments that weights are updated from, or their gradients, and their values."""
    program = recording.program
    assert program is not None and program.value is not None
    needed = step.turn.backward.reach(np.r_[step.pairs.value[step.weight], np.flatnonzero(step.gradient)])
    rows = rows[needed[program.value[rows]]]
    return rows, program.value[rows]
