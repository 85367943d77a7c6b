"""A language model in Flax NNX, trained by a step over the split state of the model and its optimizer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from programs.case import Case, program
from programs.sharding import replicated, shapes, split_batch
from programs.training import jit_step
from programs.transformer import cross_entropy


class Block(nnx.Module):
    """A layer of a transformer."""

    def __init__(self, width: int, heads: int, dtype: Any, rngs: nnx.Rngs) -> None:
        self.norm_1 = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, dtype=dtype, decode=False, rngs=rngs)
        self.norm_2 = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, dtype=dtype, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, dtype=dtype, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = x + self.attention(self.norm_1(x), mask=nnx.make_causal_mask(x[..., 0]))
        return x + self.down(nnx.gelu(self.up(self.norm_2(x))))


class LanguageModel(nnx.Module):
    """A language model whose head is its embedding."""

    def __init__(self, dtype: Any, rngs: nnx.Rngs, width: int = 1024, layers: int = 2) -> None:
        self.embed = nnx.Embed(32000, width, dtype=dtype, rngs=rngs)
        self.blocks = nnx.List([Block(width, 16, dtype, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, dtype=dtype, rngs=rngs)

    def __call__(self, tokens: Any, remat: str) -> Any:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x) if remat == "none" else nnx.remat(type(block).__call__)(block, x)
        return self.embed.attend(self.norm(x))


@program(
    "v5e", "v5p",
    donation={"donate": True}, rematerialization={"remat": "layer"}, Compute_in_bf16={"compute": "bfloat16"},
    Store_the_first_moments={"mu_dtype": "bfloat16"},
)  # fmt: skip
def nnx_lm(
    devices: list[Any], donate: bool = False, remat: str = "none", compute: str = "float32",
    mu_dtype: str | None = None, batch: int = 8,
) -> Case:  # fmt: skip
    """A language model with tied embeddings and AdamW."""

    def initial() -> Any:
        model = LanguageModel(compute, nnx.Rngs(0))
        return nnx.split((model, nnx.Optimizer(model, optax.adamw(1e-3, mu_dtype=mu_dtype), wrt=nnx.Param)))

    definition, state = jax.eval_shape(initial)

    def train_step(state: Any, tokens: Any) -> Any:
        model, optimizer = nnx.merge(definition, state)

        def loss(model: LanguageModel) -> Any:
            return cross_entropy(model(tokens[:, :-1], remat), tokens[:, 1:])

        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value

    roles = jax.tree_util.tree_map_with_path(lambda path, _: _role(jax.tree_util.keystr(path)), state)
    return Case(
        jit_step(train_step, donate),
        (shapes(lambda: initial()[1], replicated(devices[:1])), split_batch(devices[:1])((batch, 513), jnp.int32)),
        (roles, "input"),
    )


def _role(path: str) -> str:
    if "opt_state" in path or "step" in path:
        return "optimizer state"
    return "input" if "rngs" in path else "parameter"
