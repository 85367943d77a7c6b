"""A transformer in Equinox, whose arrays are an argument of the step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch
from programs.training import TRAINED, jit_step, training_state, training_step
from programs.transformer import cross_entropy


@program(
    "v4", "v6e", donation={"donate": True}, microbatching={"microbatches": 2}, rematerialization={"remat": "layer"}
)
def equinox_lm(
    devices: list[Any], donate: bool = False, microbatches: int = 1, remat: str = "none", batch: int = 16
) -> Case:
    """A language model of modules for one sequence, mapped over the batch, with Lion."""
    import equinox as eqx

    width, heads, layers, vocabulary, length = 1024, 16, 2, 32000, 512

    class Block(eqx.Module):  # type: ignore[misc]
        attention: eqx.nn.MultiheadAttention
        norm_1: eqx.nn.LayerNorm
        norm_2: eqx.nn.LayerNorm
        mlp: eqx.nn.MLP

        def __init__(self, key: Any) -> None:
            keys = jax.random.split(key)
            self.attention = eqx.nn.MultiheadAttention(heads, width, key=keys[0])
            self.norm_1, self.norm_2 = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
            self.mlp = eqx.nn.MLP(width, width, 4 * width, 1, jax.nn.gelu, key=keys[1])

        def __call__(self, x: Any) -> Any:
            h = jax.vmap(self.norm_1)(x)
            x = x + self.attention(h, h, h, mask=jnp.tril(jnp.ones((length, length), bool)))
            return x + jax.vmap(self.mlp)(jax.vmap(self.norm_2)(x))

    class LanguageModel(eqx.Module):  # type: ignore[misc]
        embed: eqx.nn.Embedding
        blocks: list[Block]
        head: eqx.nn.Linear

        def __call__(self, tokens: Any) -> Any:
            x = jax.vmap(self.embed)(tokens)
            for one in self.blocks:
                x = (one if remat == "none" else eqx.filter_checkpoint(one))(x)
            return jax.vmap(self.head)(x)

    def model() -> LanguageModel:
        keys = jax.random.split(jax.random.key(0), layers + 2)
        embed = eqx.nn.Embedding(vocabulary, width, key=keys[0])
        head = eqx.nn.Linear(width, vocabulary, key=keys[1])
        return LanguageModel(embed, [Block(key) for key in keys[2:]], head)

    static = eqx.partition(eqx.filter_eval_shape(model), lambda a: isinstance(a, jax.ShapeDtypeStruct))[1]
    optimizer = optax.lion(1e-4)

    def loss(params: Tree, tokens: Any) -> Any:
        whole = eqx.combine(params, static)
        return cross_entropy(jax.vmap(whole)(tokens[:, :-1]), tokens[:, 1:])

    def initial() -> Tree:
        return training_state(eqx.filter(model(), eqx.is_array), optimizer)

    return Case(
        jit_step(training_step(loss, optimizer, microbatches), donate),
        (shapes(initial, replicated(devices)), split_batch(devices)((batch, length + 1), jnp.int32)),
        (TRAINED, "input"),
    )
