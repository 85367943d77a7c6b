"""Language models in plain JAX and Optax."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import optax
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch
from programs.training import TRAINED, jit_step, training_state, training_step
from programs.transformer import Sizes, token_loss, transformer


def _case(
    devices: list[Any], sizes: Sizes, optimizer: optax.GradientTransformation, stacked: bool, donate: bool,
    microbatches: int, remat: str, compute: str, params_dtype: str = "float32",
) -> Case:  # fmt: skip
    def initial() -> Tree:
        return training_state(transformer(sizes, stacked, params_dtype), optimizer)

    def loss(params: Tree, tokens: Any) -> Any:
        return token_loss(params, tokens, sizes.heads, remat, compute)

    return Case(
        jit_step(training_step(loss, optimizer, microbatches), donate),
        (shapes(initial, replicated(devices)), split_batch(devices)(sizes.tokens, jnp.int32)),
        (TRAINED, "input"),
    )


@program(
    "v5e", "tpu7x", "h100",
    donation={"donate": True}, microbatching={"microbatches": 2}, rematerialization={"remat": "layer"},
    Store_the_first_moments={"mu_dtype": "bfloat16"}, Compute_in_bf16={"compute": "bfloat16"},
)  # fmt: skip
def lm_unrolled(
    devices: list[Any], donate: bool = False, microbatches: int = 1, remat: str = "none",
    compute: str = "float32", mu_dtype: str | None = None, batch: int = 8,
) -> Case:  # fmt: skip
    """A transformer of four layers, one after the other, in f32 on one device."""
    optimizer = optax.adamw(1e-3, mu_dtype=mu_dtype)
    return _case(devices[:1], Sizes(batch=batch), optimizer, False, donate, microbatches, remat, compute)


@program(
    "v5e", "v6e", "h100",
    microbatching={"microbatches": 2}, rematerialization={"remat": "layer"},
    Compute_in_bf16={"compute": "bfloat16"},
)  # fmt: skip
def lm_scanned(
    devices: list[Any], donate: bool = True, microbatches: int = 1, remat: str = "none",
    compute: str = "float32", layers: int = 12, batch: int = 8,
) -> Case:  # fmt: skip
    """A transformer whose layers are a scan that keeps each layer's activations, donated."""
    sizes = Sizes(layers=layers, batch=batch)
    return _case(devices[:1], sizes, optax.adamw(1e-3), True, donate, microbatches, remat, compute)


@program(
    "v5p", "v6e",
    donation={"donate": True}, microbatching={"microbatches": 2}, Store_the_first_moments={"mu_dtype": "bfloat16"},
)  # fmt: skip
def lm_mixed(
    devices: list[Any], donate: bool = False, microbatches: int = 1, remat: str = "layer",
    compute: str = "bfloat16", mu_dtype: str | None = None, batch: int = 32,
) -> Case:  # fmt: skip
    """A scan over layers with recomputation, in bf16 with master weights in f32, data-parallel."""
    sizes, optimizer = Sizes(layers=12, batch=batch), optax.adamw(1e-3, mu_dtype=mu_dtype)
    return _case(devices, sizes, optimizer, True, donate, microbatches, remat, compute)


@program("v4", "v5e", donation={"donate": True}, rematerialization={"remat": "layer"})
def lm_adafactor(devices: list[Any], donate: bool = False, remat: str = "none", params_dtype: str = "bfloat16") -> Case:
    """Weights in bf16 trained with Adafactor, whose state is rows and columns of each weight."""
    optimizer = optax.adafactor(1e-3)
    return _case(devices[:1], Sizes(layers=6), optimizer, True, donate, 1, remat, "bfloat16", params_dtype)
