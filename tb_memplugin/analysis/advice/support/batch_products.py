"""Products of a training step's forward pass: their numbers of rows, and the dimensions that they pair."""

from __future__ import annotations

from math import isqrt

import numpy as np

from tb_memplugin.analysis.dataflow.graph import DataflowGraph
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep
from tb_memplugin.analysis.ownership.roles import value_roles
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.dataflow import ProductKind
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.shapes import dimensions


def rows_of_products(recording: Recording, graph: DataflowGraph, step: TrainingStep) -> I64:
    """Return the numbers of rows of the products of weights with data in the forward pass, where these are certain.

    A product of [m, k] and [k, n] has sqrt(m * k * m * n / (k * n)) = m rows.
    """
    values, products = graph.values, graph.values.products
    weight, data = _sides(recording, graph, step)
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


def _sides(recording: Recording, graph: DataflowGraph, step: TrainingStep) -> tuple[I64, I64]:
    """Return the elements of each product's weight and of its other side, 0 where a product has no such side."""
    values, products, n = graph.values, graph.values.products, len(graph.values)
    program, owner = recording.program, step.owner[:n]
    of_weights = np.zeros(n + 1, dtype=bool)
    if program is not None and program.value is not None:
        of_weights[program.value[(value_roles(recording) == Role.PARAMETER) & (program.value >= 0)]] = True
    of_weights[n] = False
    is_weight = of_weights[:n] | (owner >= 0) & of_weights[np.minimum(owner, n)]
    size, weight = np.zeros((2, len(products)), dtype=np.int64), np.zeros((2, len(products)), dtype=bool)
    order = np.argsort(values.elements[products.value], kind="stable")  # of several values, a side is the largest
    side, product, value = products.side[order], products.product[order], products.value[order]
    size[side, product], weight[side, product] = values.elements[value], is_weight[value]
    one, left = weight[0] ^ weight[1], weight[0]
    return np.where(one, np.where(left, size[0], size[1]), 0), np.where(one, np.where(left, size[1], size[0]), 0)


def is_mixed(recording: Recording, graph: DataflowGraph, step: TrainingStep, inputs: I64, size: int) -> bool:
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
