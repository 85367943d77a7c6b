"""Memory that CUDA's kernels allocate besides their outputs: workspaces of cuBLAS, and buffers of reductions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

aten = torch.ops.aten
MATMULS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}
CUBLAS, CUBLASLT = 32 << 20, 1 << 20


@dataclass
class Workspaces:
    """The workspaces of one GPU. cuBLAS has one for each thread that calls it: of the program, and of autograd."""

    multiprocessors: int = 132
    made: set[tuple[str, bool]] = field(default_factory=set)

    def of(self, func: Any, args: Any, made: Any) -> Iterator[tuple[int, bool]]:
        """Yield the bytes of what a kernel allocates, and whether it stays allocated."""
        packet = func._overloadpacket
        if packet in MATMULS:
            in_backward = torch._C._current_autograd_node() is not None
            yield from self._once("cublas", in_backward, CUBLAS)
            if packet is aten.addmm:
                yield from self._once("cublaslt", in_backward, CUBLASLT)

    def _once(self, name: str, in_backward: bool, size: int) -> Iterator[tuple[int, bool]]:
        if (name, in_backward) not in self.made:
            self.made.add((name, in_backward))
            yield size, True
