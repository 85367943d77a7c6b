"""CUDA's own kernels for dropout and attention, with what they save for the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from tb_memplugin.torch_fit.autocast import HALVES

aten = torch.ops.aten
FLASH_HEAD = 256  # largest size of a head for flash attention
MASK_ALIGNMENT = 16  # elements, of a mask's rows for memory-efficient attention


def _dropout(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Apply dropout with a mask of one byte for each element."""
    tensor, p, train = bind(("input", "p", "train"), args, kwargs)
    if not train or not 0 < p < 1:
        return func(*args, **kwargs)
    return torch.native_dropout(tensor, p, True)[0]


def bind(names: tuple[str, ...], args: Any, kwargs: Any, *defaults: Any) -> tuple[Any, ...]:
    """Return the arguments in the order of names; the last ones may have defaults."""
    given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    given |= dict(zip(names, args, strict=False)) | kwargs
    if "training" in given:
        given["train"] = given["training"]
    return tuple(given[name] for name in names)


SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


def _attention(mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Run flash attention in half precision without a mask, else memory-efficient attention where its rules allow."""
    given = bind(SDPA, args, kwargs, None, 0.0, False, None, False)
    query, key, value, mask, dropout, is_causal, scale, grouped = given
    head = query.shape[-1]
    same = query.dim() == 4 and key.shape[-1] == head == value.shape[-1] and all(query.shape)
    heads = query.shape[-3] == key.shape[-3] == value.shape[-3] if same else False
    if same and mask is None and query.dtype in HALVES and head <= FLASH_HEAD and (heads or grouped):
        return _flash(query, key, value, dropout, is_causal, scale)
    is_aligned = head % (4 if query.dtype == torch.float32 else 8) == 0
    if same and heads and query.dtype in (torch.float32, *HALVES) and is_aligned:
        return _efficient(query, key, value, mask, dropout, is_causal, scale)
    mode.tracker.assumptions.note("Attention runs unfused where its shapes, types or mask require that")
    attend = aten._scaled_dot_product_attention_math
    return attend(query, key, value, mask, dropout, is_causal, scale=scale, enable_gqa=grouped)[0]


def _flash(query: Any, key: Any, value: Any, dropout: float, is_causal: bool, scale: Any) -> Any:
    head = query.shape[-1]
    extra = -head % 8
    if extra:
        query, key, value = (F.pad(one, (0, extra)) for one in (query, key, value))
        scale = head**-0.5 if scale is None else scale
    found = aten._scaled_dot_product_flash_attention(query, key, value, dropout, is_causal, False, scale=scale)[0]
    return found[..., :head] if extra else found


def _efficient(query: Any, key: Any, value: Any, mask: Any, dropout: float, is_causal: bool, scale: Any) -> Any:
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
        rows, columns = query.shape[-2], key.shape[-2]
        if columns % MASK_ALIGNMENT:
            mask = F.pad(mask, (0, -columns % MASK_ALIGNMENT))[..., :columns]
        mask = mask.expand(query.shape[0], query.shape[1], rows, columns)
    needs = torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, needs, dropout, is_causal, scale=scale
    )[0]


SUBSTITUTES: dict[str, Callable[..., Any]] = {
    "dropout": _dropout,
    "scaled_dot_product_attention": _attention,
}
