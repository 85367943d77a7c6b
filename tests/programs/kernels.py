"""Programs with Pallas kernels for TPU, which use VMEM that they ask for."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from programs.case import Case, Tree, program
from programs.sharding import replicated, shapes, split_batch


def fused_linear(x: Any, w: Any, b: Any, tile: tuple[int, int, int]) -> Any:
    """Return gelu(x @ w + b) by a kernel that sums up in a scratch buffer in VMEM."""
    from jax.experimental.pallas import tpu as pltpu

    rows, depth, columns = tile

    def kernel(x_ref: Any, w_ref: Any, b_ref: Any, out_ref: Any, sum_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            out_ref[...] = jax.nn.gelu(sum_ref[...] + b_ref[...]).astype(out_ref.dtype)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], w.shape[1]), x.dtype),
        grid=(x.shape[0] // rows, w.shape[1] // columns, x.shape[1] // depth),
        in_specs=[
            pl.BlockSpec((rows, depth), lambda i, j, k: (i, k)),
            pl.BlockSpec((depth, columns), lambda i, j, k: (k, j)),
            pl.BlockSpec((1, columns), lambda i, j, k: (0, j)),
        ],
        out_specs=pl.BlockSpec((rows, columns), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((rows, columns), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        name="fused_linear",
    )(x, w, b)


@program("v5e", "v6e")
def fused_mlp(devices: list[Any], tile: list[int] = [512, 1024, 512], batch: int = 8192) -> Case:  # noqa: B006
    """A perceptron in bf16 whose layers are one kernel each."""
    width, layers = 4096, 4

    def forward(params: list[Tree], x: Any) -> Any:
        for p in params:
            x = fused_linear(x, p["w"], p["b"], (tile[0], tile[1], tile[2]))
        return x

    def initial() -> Tree:
        one = {"w": jnp.zeros((width, width), jnp.bfloat16), "b": jnp.zeros((1, width), jnp.float32)}
        return [one] * layers

    return Case(
        jax.jit(forward),
        (shapes(initial, replicated(devices[:1])), split_batch(devices[:1])((batch, width), jnp.bfloat16)),
        ("parameter", "input"),
    )


@program("v5p", "tpu7x")
def flash_attention(devices: list[Any], batch: int = 4, length: int = 4096) -> Case:
    """Gradients of attention by JAX's own kernel for TPU, which keeps no scores."""
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention as attend

    width, heads = 2048, 16

    def loss(params: Tree, x: Any) -> Any:
        q, k, v = ((x @ params[name]).reshape(batch, length, heads, -1).transpose(0, 2, 1, 3) for name in "qkv")
        mixed = attend(q, k, v, causal=True, sm_scale=0.1).transpose(0, 2, 1, 3)
        return jnp.mean((mixed.reshape(x.shape) @ params["o"]).astype(jnp.float32) ** 2)

    def step(params: Tree, x: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - (0.01 * g).astype(p.dtype), params, grads), value

    def initial() -> Tree:
        return {name: jnp.zeros((width, width), jnp.bfloat16) for name in "qkvo"}

    one = replicated(devices[:1])
    return Case(
        jax.jit(step),
        (shapes(initial, one), split_batch(devices[:1])((batch, length, width), jnp.bfloat16)),
        ("parameter", "input"),
    )
