"""Kernels of other packages in a trace: the shapes of their results, which their packages declare, and Triton's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch._library.fake_impl import set_ctx_getter
from torch._library.simple_registry import singleton

from tb_memplugin.errors import InputError
from tb_memplugin.torch_fit.assumptions import Assumptions, user_line
from tb_memplugin.torch_fit.known_values import tensors_in


def run_without_values(noted: Assumptions, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operator on tensors without memory. InputError for a package's one whose results have unknown shapes."""
    if func._opname == "_grouped_mm":
        return _grouped_mm(func, args, kwargs)
    if func.namespace == "aten":
        return func(*args, **kwargs)
    declared = singleton.find(func.name()).fake_impl.kernel
    if declared is None:
        return func(*args, **kwargs)
    try:
        with set_ctx_getter(lambda: _MostResults(noted, func, args)):
            return declared(*args, **kwargs)
    except RuntimeError as error:
        if "register_fake" not in str(error):
            raise
        raise without_shapes(func) from None


def without_shapes(func: Any) -> InputError:
    """Return the error that an operator does not say which shapes its results have."""
    remedy = f'register a function that returns empty results: @torch.library.register_fake("{func.name()}")'
    return InputError(f"The shapes of what {func.name()} returns are unknown", user_line(), remedy)


class _MostResults:
    """The argument of a function of shapes that depend on values, as of boxes that do not overlap."""

    def __init__(self, noted: Assumptions, func: Any, args: Any) -> None:
        self.noted, self.func, self.args = noted, func, args

    def new_dynamic_size(self, **bounds: int | None) -> int:
        """Return the size of a result: the most there can be, else as many as there are inputs."""
        self.noted.note_line(f"{self.func.name()} is assumed to keep all of its inputs")
        sizes = [int(one.shape[0]) for one in tensors_in(self.args) if one.dim()]
        most = bounds.get("max")
        return max(sizes, default=0) if most is None else most

    create_unbacked_symint = new_dynamic_size  # its older name


def _grouped_mm(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Multiply groups of any type, as the GPU does; PyTorch's function of their shapes refuses float32."""
    halves = [one.to(torch.bfloat16) if one.is_floating_point() else one for one in args if torch.is_tensor(one)]
    return func(*halves, *args[len(halves) :], **kwargs).to(args[0].dtype)


@contextmanager
def triton_kernels(noted: Assumptions) -> Iterator[None]:
    """Let Triton's kernels do nothing: they write to tensors that exist."""
    jit = sys.modules.get("triton.runtime.jit")  # torch._dynamo imports it where it is installed
    if jit is None:
        yield
        return

    def launcher(kernel: Any, grid: Any) -> Any:
        noted.note("Kernels of Triton are left out: they are assumed to allocate nothing")
        return lambda *args, **options: None

    with patch.object(jit.KernelInterface, "__getitem__", launcher):
        yield
