"""Operations whose result depends on values, which a trace does not have: what is assumed of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tb_memplugin.torch_fit.assumptions import Assumptions
from tb_memplugin.torch_fit.known_values import KnownValues

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
