"""The batch dimension of a training step's inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.support.batch_products import is_mixed, rows_of_products
from tb_memplugin.analysis.dataflow.copies import copied_from
from tb_memplugin.analysis.dataflow.graph import DataflowGraph
from tb_memplugin.analysis.dataflow.training_step import TrainingPhase, TrainingStep
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.shapes import dimensions

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

    Return None where a product combines the examples with each other, as attention does with the positions in time, and
    for a batch of one example, and of a graph, where an example is a node.
    """
    shapes = {row: dimensions(recording.allocations.shape[row]) for row in inputs.tolist()}
    counts, leading = rows_of_products(recording, graph, step), _leading_dimensions(recording, graph, step, inputs)
    found: list[tuple[float, int, int, int, Batch]] = []
    for nth in range(MAX_DIMENSION + 1):
        for size in sorted({shape[nth] for shape in shapes.values() if len(shape) > nth and shape[nth] > 1}):
            rows = [row for row, shape in shapes.items() if len(shape) > nth and shape[nth] == size]
            divides = float(np.mean(counts % size == 0)) if len(counts) else 1.0
            largest = max(rows, key=lambda row: int(recording.allocations.size[row]))
            devices = _devices(recording.program, graph, largest, nth)
            found.append((divides, leading.get(size, 0), -nth, len(rows), Batch(nth, size, devices, np.array(rows))))
    best = max(found, key=lambda entry: entry[:4])[4] if found else None
    if best is None or is_mixed(recording, graph, step, inputs, best.size):
        return None
    single = any(shapes[row][0] == 1 for row in best.rows.tolist())
    return None if single or _has_edges(recording, graph, best, shapes) else best


def _leading_dimensions(recording: Recording, graph: DataflowGraph, step: TrainingStep, inputs: I64) -> dict[int, int]:
    """Return how many arrays with each first dimension the forward pass computes from the inputs.

    What loops carry does not count: a scan stacks the values of its iterations.
    """
    program, shape = recording.program, recording.allocations.shape
    assert program is not None and program.value is not None
    computed = _computed(graph, step, program.value[inputs])
    computed &= step.phase[: len(graph.values)] == TrainingPhase.FORWARD
    computed[np.concatenate(graph.values.loop_carried)] = False
    known = (program.value >= 0) & (shape.codes >= 0)
    count = np.bincount(shape.codes[known & computed[program.value]], minlength=len(shape.strings))
    found: dict[int, int] = {}
    for code in np.flatnonzero(count).tolist():
        if sizes := dimensions(shape.strings[code]):
            found[sizes[0]] = found.get(sizes[0], 0) + int(count[code])
    return found


def _has_edges(recording: Recording, graph: DataflowGraph, batch: Batch, shapes: dict[int, list[int]]) -> bool:
    """Return whether an input numbers the examples, as the edges of a graph do: integers in a longer dimension."""
    assert recording.program is not None and recording.program.value is not None
    shared = {size for row in batch.rows.tolist() for size in shapes[row]}
    others = [row for row, shape in shapes.items() if shape and max(shape) > batch.size and shared.isdisjoint(shape)]
    return bool((graph.values.floating[recording.program.value[others]] == 0).any()) if others else False


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


def used_inputs(recording: Recording, graph: DataflowGraph, step: TrainingStep, rows: I64) -> tuple[I64, I32]:
    """Return those rows of arguments that weights are updated from, or their gradients, and their values."""
    program = recording.program
    assert program is not None and program.value is not None
    needed = step.turn.backward.reach(np.r_[step.pairs.value[step.weight], np.flatnonzero(step.gradient)])
    rows = rows[needed[program.value[rows]]]
    return rows, program.value[rows]


def _computed(graph: DataflowGraph, step: TrainingStep, inputs: I32) -> Mask:
    """Mark the values that are computed from these, other than copies of arguments."""
    values = graph.values
    return step.turn.forward.reach(inputs)[: len(values)] & (values.argument[copied_from(values)] < 0)
