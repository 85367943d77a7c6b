"""Functions as on CUDA: autocast, for tensors that the dispatcher would not cast, and CUDA's own kernels.

The lists are those of PyTorch's Autocast Op Reference. The kernels are those of dropout and attention, with what they
save for the backward pass.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten

LOWER_PRECISION = frozenset(
    """__matmul__ __rmatmul__ matmul addbmm addmm addmv addr baddbmm bmm chain_matmul linalg_multi_dot multi_dot conv1d
    conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc convolution gru_cell linear lstm_cell lstm
    gru rnn_tanh rnn_relu mm mv prelu rnn_tanh_cell rnn_relu_cell einsum scaled_dot_product_attention""".split()
)
FLOAT32 = frozenset(
    """__pow__ __rdiv__ __rpow__ __rtruediv__ acos asin binary_cross_entropy_with_logits cosh cosine_embedding_loss
    cdist cosine_similarity dist erfinv exp expm1 group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm
    log log10 log1p log2 logsumexp margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss
    nll_loss2d nll_loss_nd nuclear_norm pdist poisson_nll_loss pow reciprocal renorm rms_norm rsqrt sinh smooth_l1_loss
    soft_margin_loss softplus tan triplet_margin_loss upsample_bicubic2d upsample_bilinear2d upsample_linear1d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d""".split()
)
FLOAT32_BY_DTYPE = frozenset("cumprod cumsum log_softmax prod softmax sum norm".split())
WIDEST = frozenset(
    """addcdiv addcmul atan2 bilinear cat concat cross dot grid_sampler index_put scatter_add stack tensordot
    vdot""".split()
)
HALVES = (torch.float16, torch.bfloat16)


class AutocastCache:
    """Casts of parameters, which autocast keeps until its outermost block ends."""

    def __init__(self) -> None:
        self.casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.has_gradients = _cached_casts_have_gradients()

    def cast(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor in another type, from the cache where it is a parameter."""
        is_cached = (
            dtype in HALVES and tensor.requires_grad and tensor.is_leaf and tensor.dtype == torch.float32
            and not tensor._is_view() and torch.is_autocast_cache_enabled()
        )  # fmt: skip
        if not is_cached or (self.has_gradients and torch.is_inference_mode_enabled()):
            return tensor.to(dtype)
        if id(tensor) not in self.casts:
            with torch.set_grad_enabled(self.has_gradients or torch.is_grad_enabled()):
                self.casts[id(tensor)] = tensor, tensor.to(dtype)
        return self.casts[id(tensor)][1]


@cache
def _cached_casts_have_gradients() -> bool:
    """Return whether a cast is kept with its gradient also where gradients are off, and never in inference mode.

    So it is since the pull request 165068 of PyTorch, of December 2025. PyTorch is asked once, before the first trace:
    the compiler makes further caches while operations are intercepted.
    """
    values, weight = torch.zeros(1, 1), torch.nn.Parameter(torch.zeros(1, 1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            torch.nn.functional.linear(values, weight)
        return bool(torch.nn.functional.linear(values, weight).requires_grad)


def autocast_arguments(cache: AutocastCache, name: str, args: Any, kwargs: Any) -> Any:
    """Return the positional and named arguments of a function as autocast on CUDA would pass them."""
    if name in LOWER_PRECISION:
        return _cast_all(cache, (args, kwargs), torch.get_autocast_dtype("cuda"))
    if name in FLOAT32:
        return _cast_all(cache, (args, kwargs), torch.float32)
    if name in FLOAT32_BY_DTYPE and args and _is_castable(args[0]) and args[0].dtype in HALVES:
        if kwargs.get("dtype") is None and not any(isinstance(one, torch.dtype) for one in args):
            return args, {**kwargs, "dtype": torch.float32}
    if name in WIDEST:
        types = {one.dtype for one in tree_leaves((args, kwargs)) if _is_castable(one)}
        if len(types) > 1 and torch.float32 in types:
            return _cast_all(cache, (args, kwargs), torch.float32)
    return args, kwargs


def _is_castable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta and value.dtype in (torch.float32, *HALVES)


def _cast_all(cache: AutocastCache, values: Any, dtype: torch.dtype) -> Any:
    def cast(value: Any) -> Any:
        return cache.cast(value, dtype) if _is_castable(value) and value.dtype != dtype else value

    return tree_map(cast, values)


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
