"""Memory that CUDA's kernels allocate besides their outputs: workspaces of cuBLAS, and buffers of reductions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from tb_memplugin.torch_fit.assumptions import Assumptions
from tb_memplugin.torch_fit.reductions import Layout, reduction_buffers

aten = torch.ops.aten
MATMULS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}
REDUCTIONS = {aten.sum: 1, aten.mean: 1, aten.amax: 1, aten.amin: 1, aten.linalg_vector_norm: 2}  # argument with dims
CUBLAS, CUBLAS_OLDER, CUBLASLT = 32 << 20, 8 << 20, 1 << 20  # PyTorch's defaults: on Hopper and later, and before it
HOPPER = (9, 0)


@dataclass
class Workspaces:
    """The workspaces of one GPU. cuBLAS has one for each thread that calls it: of the program, and of autograd."""

    capability: tuple[int, int]
    multiprocessors: int
    assumptions: Assumptions
    made: set[tuple[str, bool]] = field(default_factory=set)

    def staying(self, packet: Any) -> list[int]:
        """Return the bytes of workspaces that a kernel allocates and that stay."""
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
        self.assumptions.note(
            "reduction", "Long sums are split over blocks, with a buffer of partial results", sum(found)
        )
        return list(found)

    def _once(self, name: str, size: int) -> list[int]:
        key = name, torch._C._current_autograd_node() is not None
        if key in self.made:
            return []
        self.made.add(key)
        total = size * sum(name == other for other, _ in self.made)
        self.assumptions.note(name, f"{name} has a workspace for the program, and one for autograd's thread", total)
        return [size]
