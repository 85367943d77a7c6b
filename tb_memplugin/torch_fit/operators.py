"""Operators on tensors without memory: those whose result depends on values, and kernels of other packages.

Of values, which a trace does not have, something is assumed. The shapes of results of other packages are what these
declare, and Triton's kernels do nothing.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch._library.fake_impl import set_ctx_getter
from torch._library.simple_registry import singleton

from tb_memplugin.errors import InputError
from tb_memplugin.torch_fit.assumptions import Assumptions, user_line
from tb_memplugin.torch_fit.known_values import KnownValues, tensors_in

aten = torch.ops.aten

# A loop that waits for a truth value ends after so many turns where the value is unknown, or depends on unknown ones.
MAX_READS, MAX_ASSUMED_READS = 1000, 100_000


def _scalar(noted: Assumptions, values: KnownValues, func: Any, args: Any, kwargs: Any) -> Any:
    known = values.of(args[0])
    if known is not None and not values.is_assumed(args[0]):
        return known.item()
    value = torch.zeros((), dtype=args[0].dtype).item() if known is None else known.item()
    reads = noted.note_line(f"A value that is read on the GPU counts as {value:g}")
    most = MAX_READS if known is None else MAX_ASSUMED_READS
    if args[0].dtype != torch.bool or reads <= most:
        return value
    noted.note_line(f"A loop ends after {most:,} turns, as its condition is on the GPU,")
    return not value


def _equal(noted: Assumptions, values: KnownValues, func: Any, args: Any, kwargs: Any) -> Any:
    one, other = values.of(args[0]), values.of(args[1])
    if one is not None and other is not None:
        return torch.equal(one, other)
    noted.note_line("Tensors that are compared count as equal")
    return True


def _selected(noted: Assumptions, values: KnownValues, mask: torch.Tensor, shape: Any = None) -> int:
    """Return how many elements a mask selects, of a tensor to which it is broadcast."""
    shape = mask.shape if shape is None else shape
    if (known := values.of(mask)) is not None:
        return int(known.expand(shape).count_nonzero())
    noted.note_line("A mask counts as selecting every element")
    return int(torch.Size(shape).numel())


def _nonzero(noted: Assumptions, values: KnownValues, func: Any, args: Any, kwargs: Any) -> Any:
    count = _selected(noted, values, args[0])
    return torch.empty((count, args[0].dim()), dtype=torch.int64, device="meta")


def _masked_select(noted: Assumptions, values: KnownValues, func: Any, args: Any, kwargs: Any) -> Any:
    size = _selected(noted, values, args[1], torch.broadcast_shapes(args[0].shape, args[1].shape))
    return torch.empty(size, dtype=args[0].dtype, device="meta")


def _index(noted: Assumptions, values: KnownValues, func: Any, args: Any, kwargs: Any) -> Any:
    """Index with masks replaced by the indices of their elements."""
    indices: list[Any] = []
    for one in args[1]:
        if one is not None and one.dtype in (torch.bool, torch.uint8):
            count = _selected(noted, values, one)
            indices += [torch.empty(count, dtype=torch.int64, device="meta") for _ in range(one.dim())]
        else:
            indices.append(one if one is None or one.is_meta else torch.empty_like(one, device="meta"))
    return func(args[0], indices, *args[2:], **kwargs)


def _unique(noted: Assumptions, values: KnownValues, func: Any, args: Any, kwargs: Any) -> Any:
    if (known := values.of(args[0])) is not None:
        return tuple(torch.empty_like(one, device="meta") for one in func(known, *args[1:], **kwargs))
    noted.note_line("All elements count as different")
    count = args[0].numel()
    index = torch.empty(count, dtype=torch.int64, device="meta")
    return torch.empty(count, dtype=args[0].dtype, device="meta"), index, torch.empty_like(index)


DATA_DEPENDENT: dict[Any, Callable[..., Any]] = {
    aten._local_scalar_dense.default: _scalar,
    aten.equal.default: _equal,
    aten.nonzero.default: _nonzero,
    aten.masked_select.default: _masked_select,
    aten.index.Tensor: _index,
    aten.index_put.default: _index,
    aten.index_put_.default: _index,
    aten._unique2.default: _unique,
}


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
