"""Operations whose result depends on values, which a trace does not have: what is assumed of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tb_memplugin.torch_fit.assumptions import Assumptions, user_line

aten = torch.ops.aten


MAX_READS = 1000  # of a truth value at one line: a loop that waits for it ends then


def _scalar(noted: Assumptions, func: Any, args: Any, kwargs: Any) -> Any:
    line, dtype = user_line(), args[0].dtype
    reads = noted.note(f"value {line}", f"A value that is read on the GPU counts as 0 at {line}")
    if dtype != torch.bool:
        return 0.0 if dtype.is_floating_point else 0
    if reads > MAX_READS:
        noted.note(f"loop {line}", f"The loop at {line} ends after {MAX_READS:,} turns, as its condition is on the GPU")
    return reads > MAX_READS


def _equal(noted: Assumptions, func: Any, args: Any, kwargs: Any) -> Any:
    noted.note(f"equal {user_line()}", f"Tensors that are compared count as equal at {user_line()}")
    return True


def _all_selected(noted: Assumptions) -> None:
    noted.note(f"select {user_line()}", f"A mask counts as selecting every element at {user_line()}")


def _nonzero(noted: Assumptions, func: Any, args: Any, kwargs: Any) -> Any:
    _all_selected(noted)
    return torch.empty((args[0].numel(), args[0].dim()), dtype=torch.int64, device="meta")


def _masked_select(noted: Assumptions, func: Any, args: Any, kwargs: Any) -> Any:
    _all_selected(noted)
    size = torch.broadcast_shapes(args[0].shape, args[1].shape).numel()
    return torch.empty(size, dtype=args[0].dtype, device="meta")


def _index(noted: Assumptions, func: Any, args: Any, kwargs: Any) -> Any:
    """Index with masks replaced by the indices of all their elements."""
    indices: list[Any] = []
    for one in args[1]:
        if one is not None and one.dtype in (torch.bool, torch.uint8):
            _all_selected(noted)
            indices += [torch.empty(one.numel(), dtype=torch.int64, device="meta") for _ in range(one.dim())]
        else:
            indices.append(one if one is None or one.is_meta else torch.empty_like(one, device="meta"))
    return func(args[0], indices, *args[2:], **kwargs)


def _unique(noted: Assumptions, func: Any, args: Any, kwargs: Any) -> Any:
    noted.note(f"unique {user_line()}", f"All elements count as different at {user_line()}")
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
