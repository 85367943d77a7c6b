"""Floating-point operations of matrix products and convolutions, per instruction of the schedule.

They are counted as XLA's cost analysis does. Elementwise operations, reductions and Pallas kernels are left out: these
take as long as their bytes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

import numpy as np

from tb_memplugin.model.arrays import F64
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.protos.hlo_pb2 import CountedComputationProto, CountedInstructionProto, ShapeProto
from tb_memplugin.readers.hlo.module.schedule import CALLING_OPCODES, Schedule, iterations, loop_spans
from tb_memplugin.readers.hlo.module.tables import COMPUTATIONS, HloModule

CONTRACTED = re.compile(rb'"lhs_contracting_dimensions":\[([\d",]*)\]')
GEMMS = (b"__cublas$gemm", b"__cublas$lt$matmul")
CONVOLUTIONS = b"__cudnn$conv"
COUNTED = re.compile(rb"convolution|dot|" + b"|".join(map(re.escape, (*GEMMS, CONVOLUTIONS))))
OPCODES = {"dot", "convolution", "custom-call"}
MAX_FLOPS = 2.0**100  # a damaged file must not overflow
MAX_PAIRS = 1 << 24  # of positions in a window and in a result

OfComputation = dict[int, float]  # flops per instruction id


def product_flops(module: HloModule, schedule: Schedule) -> F64:
    """Count the products of the instruction at each position, each time it runs. DecodeError where it is damaged."""
    order = schedule.order
    found = np.zeros(len(order))
    computations = _Computations(module)
    parents, ids, opcode = module.instructions["parent"][order], module.instructions["id"][order], module.opcode
    for at in np.flatnonzero(opcode.take(order).isin(OPCODES)).tolist():
        found[at] = computations.flops(int(parents[at])).get(int(ids[at]), 0.0)
    fusions = np.flatnonzero(opcode.take(order).isin({"fusion"}))
    called = module.callees.nth(order[fusions], 0)
    may_count = computations.counted[called]
    for at, row in zip(fusions[may_count].tolist(), called[may_count].tolist(), strict=True):
        found[at] = computations.total(row)
    return np.minimum(found, MAX_FLOPS)


def runs(module: HloModule) -> F64:
    """Return how often each computation runs, per row; a loop whose number of iterations is not known runs once."""
    caller = np.flatnonzero(module.is_opcode(CALLING_OPCODES))
    times, trips = np.ones(len(module.computations["id"])), iterations(module.texts, *loop_spans(module, caller))
    for row, count in zip(caller[::-1].tolist(), trips[::-1], strict=True):  # callees are stored before their callers
        callees = module.callees.values[module.callees.begin[row] : module.callees.begin[row + 1]]
        times[callees[callees >= 0]] = min(times[module.instructions["parent"][row]] * count, MAX_FLOPS)
    return times


class _Computations:
    """The operations of computations, each counted once."""

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._known: dict[int, OfComputation] = {}
        self._inner: dict[int, list[int]] = {}  # ids of the computations of fusions
        span: Spans = module.tables[COMPUTATIONS]["span"]
        words = np.array([found.start() for found in COUNTED.finditer(module.data)], dtype=np.int64)
        first = np.searchsorted(words, span.start)
        has_words = first < np.searchsorted(words, span.start + span.length)
        self.counted = np.r_[has_words, False]  # the last: no computation

    def total(self, row: int, depth: int = 0) -> float:
        """Return the sum over a computation, and over fusions inside of it, as GPU programs have them."""
        if row < 0 or depth > 8:
            return 0.0
        own = sum(self.flops(row).values())
        inner = self._module.computation_index.rows(np.array(self._inner.get(row, []), dtype=np.int64))
        return float(own + sum(self.total(called, depth + 1) for called in inner.tolist()))

    def flops(self, row: int) -> OfComputation:
        """Return the operations of each instruction of a computation, by id."""
        if row in self._known:
            return self._known[row]
        found = self._known[row] = {}
        if not self.counted[row]:
            return found
        span: Spans = self._module.tables[COMPUTATIONS]["span"]
        instructions = CountedComputationProto.FromString(span.bytes_at(self._module.data, row)).instructions
        self._inner[row] = [
            one.called_computation_ids[0]
            for one in instructions
            if one.opcode == b"fusion" and one.called_computation_ids
        ]
        products = [
            one for one in instructions if one.opcode.decode("utf-8", "replace") in OPCODES and len(one.operand_ids) > 1
        ]
        wanted = {number for one in products for number in one.operand_ids[:2]}
        shapes = {one.id: one.shape for one in instructions if one.id in wanted}
        for one in products:
            operands = [shapes[number] for number in one.operand_ids[:2] if number in shapes]
            if len(operands) == 2 and (flops := _flops(one, *operands)):
                found[one.id] = min(flops, MAX_FLOPS)
        return found


def _flops(one: CountedInstructionProto, lhs: ShapeProto, rhs: ShapeProto) -> float:
    if one.opcode == b"dot":
        return _of_product(one.shape, lhs, list(one.dot_dimension_numbers.lhs_contracting_dimensions))
    if one.opcode == b"convolution":
        return _of_convolution(one, lhs)
    if one.custom_call_target.startswith(CONVOLUTIONS):
        return _of_cudnn(one, lhs, rhs)
    contracted = CONTRACTED.search(one.backend_config) if one.custom_call_target.startswith(GEMMS) else None
    if contracted is None:
        return 0.0
    result = one.shape.tuple_shapes[0] if one.shape.tuple_shapes else one.shape
    return _of_product(result, lhs, [int(n) for n in re.findall(rb"\d{1,18}", contracted[1])])


def _of_product(result: ShapeProto, lhs: ShapeProto, contracted: list[int]) -> float:
    inner = prod(float(lhs.dimensions[n]) for n in contracted if n < len(lhs.dimensions))
    return 2.0 * prod(map(float, result.dimensions)) * inner


def _of_cudnn(one: CountedInstructionProto, lhs: ShapeProto, rhs: ShapeProto) -> float:
    """Count as the forward convolution does, whose output and filter take these places in those of its gradients."""
    result = one.shape.tuple_shapes[0] if one.shape.tuple_shapes else one.shape
    if b"BackwardInput" in one.custom_call_target:
        output, kernel = lhs, rhs
    elif b"BackwardFilter" in one.custom_call_target:
        output, kernel = rhs, result
    else:
        output, kernel = result, rhs
    feature = one.convolution_dimension_numbers.output_feature_dimension
    if not 0 <= feature < len(output.dimensions):  # a damaged file
        return 0.0
    elements = prod(map(float, output.dimensions)) * prod(map(float, kernel.dimensions))
    return 2.0 * elements / max(output.dimensions[feature], 1)


def _of_convolution(one: CountedInstructionProto, lhs: ShapeProto) -> float:
    """Count products of elements that exist: neither padding nor the holes of dilation, as XLA's cost analysis does.

    The TPU compiler makes convolutions of matrix products: dimensions of a batch become windows with strides.
    """
    dims, result = one.convolution_dimension_numbers, one.shape
    try:
        features = lhs.dimensions[dims.input_feature_dimension] / max(one.feature_group_count, 1)
        batch = lhs.dimensions[dims.input_batch_dimension] / max(one.batch_group_count, 1)
        found = 2.0 * features * batch * result.dimensions[dims.output_feature_dimension]
        places = zip(dims.input_spatial_dimensions, dims.output_spatial_dimensions, one.window.dimensions, strict=True)
        for source, target, window in places:
            found *= _pairs(
                lhs.dimensions[source], result.dimensions[target], window.size, max(window.stride, 1),
                window.padding_low, max(window.window_dilation, 1), max(window.base_dilation, 1),
            )  # fmt: skip
    except (IndexError, ValueError):  # a damaged file
        return 0.0
    return float(found)


@lru_cache(maxsize=4096)
def _pairs(source: int, target: int, size: int, stride: int, padding: int, dilation: int, base: int) -> int:
    """Count the pairs of a position in the result and one in the window that meet an element of the input."""
    if min(source, target, size) < 1 or target * size > MAX_PAIRS:
        return max(target, 1) * max(size, 1)
    at = np.arange(target)[:, None] * stride + np.arange(size)[None, :] * dilation - padding
    return int(np.count_nonzero((at >= 0) & (at <= (source - 1) * base) & (at % base == 0)))
