"""Memory that CUDA's kernels allocate besides their outputs: workspaces of cuBLAS, and buffers of reductions.

Long reductions, such as the sum for the gradient of a bias, are split over blocks. The launch rules are those of
PyTorch's reduction kernels: 512 threads a block, 4 values a load, 32 threads a warp.
"""

from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import torch

from tb_memplugin.torch_fit.assumptions import Assumptions

aten = torch.ops.aten
MATMULS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}
REDUCTIONS = {aten.sum: 1, aten.mean: 1, aten.amax: 1, aten.amin: 1, aten.linalg_vector_norm: 2}  # argument with dims
NO_CUDNN = (
    "Workspaces of convolutions, which cuDNN chooses on the GPU, are not included; on an H100, they were 5 % of what"
    " ResNet-50 reserved"
)
CUBLAS, CUBLAS_OLDER, CUBLASLT = 32 << 20, 8 << 20, 1 << 20  # PyTorch's defaults: on Hopper and later, and before it
HOPPER = (9, 0)
MAX_THREADS, WARP, VECTOR = 512, 32, 4
THREADS_PER_MULTIPROCESSOR = 2048
MIN_PER_THREAD, MAX_PER_THREAD = 16, 256  # values, for a split over blocks


@dataclass
class Workspaces:
    """The workspaces of one GPU. cuBLAS has one for each thread that calls it: of the program, and of autograd."""

    capability: tuple[int, int]
    multiprocessors: int
    assumptions: Assumptions
    made: set[tuple[str, bool]] = field(default_factory=set)

    def staying(self, packet: Any) -> list[int]:
        """Return the bytes of workspaces that a kernel allocates and that stay."""
        if packet is aten.convolution:
            self.assumptions.note(NO_CUDNN)
        if packet not in MATMULS:
            return []
        found = self._once("cuBLAS", CUBLAS if self.capability >= HOPPER else CUBLAS_OLDER)
        return found + (self._once("cuBLASLt", CUBLASLT) if packet is aten.addmm else [])

    def temporary(self, packet: Any, args: Any, kwargs: Any) -> list[int]:
        """Return the bytes of buffers that a kernel allocates and frees."""
        if packet not in REDUCTIONS:
            return []
        tensor, at = args[0], REDUCTIONS[packet]
        dims = args[at] if len(args) > at else kwargs.get("dim")
        dims = [dims] if isinstance(dims, int) else dims or range(tensor.dim())
        layout = Layout(tuple(tensor.shape), tensor.stride(), frozenset(dim % max(tensor.dim(), 1) for dim in dims))
        size = 8 if tensor.dtype in (torch.float64, torch.int64) else 4
        found = reduction_buffers(layout, size, self.multiprocessors)
        if found is None:
            return []
        self.assumptions.note("Long sums are split over blocks, with a buffer of partial results", sum(found))
        return list(found)

    def _once(self, name: str, size: int) -> list[int]:
        key = name, torch._C._current_autograd_node() is not None
        if key in self.made:
            return []
        self.made.add(key)
        total = size * sum(name == other for other, _ in self.made)
        self.assumptions.note(f"{name} has a workspace for the program, and one for autograd's thread", total)
        return [size]


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
