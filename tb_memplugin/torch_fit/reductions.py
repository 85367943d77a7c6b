"""Buffers of CUDA's reductions, such as the sum for the gradient of a bias: long ones are split over blocks.

The launch rules are those of PyTorch's reduction kernels: 512 threads a block, 4 values a load, 32 threads a warp.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

MAX_THREADS, WARP, VECTOR = 512, 32, 4
THREADS_PER_MULTIPROCESSOR = 2048
MIN_PER_THREAD, MAX_PER_THREAD = 16, 256  # values, for a split over blocks


class Layout(NamedTuple):
    """A tensor in elements, with the dimensions that are reduced."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    reduced: frozenset[int]


def _groups(layout: Layout, is_reduced: bool) -> list[tuple[int, int]]:
    """Return (stride, size) of the reduced or kept dimensions, fastest first; those that follow each other as one."""
    found: list[tuple[int, int]] = []
    rows = zip(layout.strides, layout.shape, range(len(layout.shape)), strict=True)
    for stride, size, dim in sorted(rows):
        if size == 1 or (dim in layout.reduced) != is_reduced:
            continue
        if found and found[-1][0] * found[-1][1] == stride:
            found[-1] = found[-1][0], found[-1][1] * size
        else:
            found.append((stride, size))
    return found


def _power_below(value: int, most: int) -> int:
    return most if value >= most else 1 << (max(value, 1).bit_length() - 1)


def reduction_buffers(layout: Layout, accumulated: int, multiprocessors: int) -> tuple[int, int] | None:
    """Return the bytes of partial results and of the counters of a reduction; None if one block makes each result.

    `accumulated` is the bytes of a partial result.
    """
    inner, outer = _groups(layout, True), _groups(layout, False)
    inputs, outputs = prod(size for _, size in inner), prod(size for _, size in outer)
    along = bool(inner) and (not outer or inner[0][0] < outer[0][0])  # reduces along the fastest dimension
    vector, width, height = 1, *((inputs, outputs) if along else (outputs, inputs))
    if along and not outer and len(inner) == 1 and inner[0][0] == 1 and width > 128:
        width //= VECTOR
    elif not along and outer and outer[0][0] == 1:
        vector = next(size for size in (4, 2, 1) if outer[0][1] % size == 0)
        width //= vector
    most = MAX_THREADS // vector
    wide, high = _power_below(width, most), _power_below(height, most)
    block_width = min(wide, WARP)
    block_height = min(high, most // block_width)
    block_width = min(wide, most // block_height)
    input_step, output_step = (block_width, 1) if along else (1, block_width)
    per_thread = -(-inputs // input_step)
    if per_thread < block_height * 16 and per_thread < MAX_PER_THREAD:
        return None  # each row of threads has results of its own
    per_thread = -(-inputs // (input_step * block_height))
    grid = -(-(outputs // vector) // output_step)
    wanted = multiprocessors * (THREADS_PER_MULTIPROCESSOR // (block_width * block_height))
    if per_thread < MAX_PER_THREAD or grid > wanted:
        return None
    parts = max(min(-(-wanted // grid), -(-per_thread // MIN_PER_THREAD)), -(-per_thread // MAX_PER_THREAD))
    if parts <= 1:
        return None
    return accumulated * outputs * parts * (1 if along else block_width * vector), 4 * grid
