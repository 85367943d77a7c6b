"""Small training steps and servers with known advice, compiled before and after that advice is followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from support.aot import KEEP_BARRIERS, hlo_proto

from tb_memplugin.analysis.advice import Advice, AdviceKind, advise
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo

# The CPU's compiler widens products of narrow numbers to f32; accelerators have units for them.
NARROW_PRODUCTS: dict[str, str | bool] = {"xla_disable_hlo_passes": "change-op-data-type"}
# Memory is planned before code is generated, so code that is not optimized has the same plan: a third less time.
UNOPTIMIZED: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}
# It also copies a donated argument that has another user, unless an option makes it consider the order.
IN_ORDER: dict[str, str | bool] = {"xla_cpu_copy_insertion_use_region_analysis": True}
CLOSE = 0.1  # share of the real saving
MIB = 2**20
LAYERS, WIDTH = 6, 512

Tree = Any
Layer = Callable[[Tree, Array], Array]
Shaped: Any = jax.ShapeDtypeStruct


def array(*shape: int, dtype: Any = jnp.float32) -> Any:
    return Shaped(shape, dtype)


def compiled(function: Callable[..., Any], *arguments: Any, options: dict[str, str | bool] | None = None,
             **jitted: Any) -> Recording:  # fmt: skip
    """Compile a function for the CPU; nothing runs."""
    lowered = jax.jit(function, **jitted).lower(*arguments)
    program = lowered.compile(compiler_options=UNOPTIMIZED | (options or {}))
    return read_hlo(hlo_proto(program), source="compiled")[0]


def given(recording: Recording, kind: AdviceKind, title: str = "") -> Advice:
    """Return the only advice of this kind with this text in its title."""
    (piece,) = [piece for piece in advise(recording) if piece.kind is kind and title in piece.title]
    return piece


def kinds(recording: Recording) -> set[AdviceKind]:
    return {piece.kind for piece in advise(recording)}


def assert_close(advice: Advice, before: Recording, after: Recording) -> None:
    """Check that the promised saving is what the compiler then saves."""
    real = peak(before).bytes - peak(after).bytes
    assert advice.saving.before == peak(before).bytes
    assert abs(advice.saving.expected - real) <= CLOSE * real, f"{advice.saving.expected / real:.3f} of the real saving"


# Models.


def layer(weights: Tree, x: Array) -> Array:
    made: Array = x + jnp.tanh(x @ weights["up"]) @ weights["down"]
    return made


def weights(dtype: Any = jnp.float32) -> Tree:
    one = {"up": array(WIDTH, 2 * WIDTH, dtype=dtype), "down": array(2 * WIDTH, WIDTH, dtype=dtype)}
    return {f"layer_{i}": one for i in range(LAYERS)}


def stacked_weights() -> Tree:
    return {"up": array(LAYERS, WIDTH, 2 * WIDTH), "down": array(LAYERS, 2 * WIDTH, WIDTH)}


def unrolled(one: Layer = layer) -> Callable[[Tree, Array], Array]:
    def loss(params: Tree, x: Array) -> Array:
        for i in range(LAYERS):
            with jax.named_scope(f"layer_{i}"):
                x = one(params[f"layer_{i}"], x)
        return (x.astype(jnp.float32) ** 2).mean()

    return loss


def scanned(one: Layer = layer) -> Callable[[Tree, Array], Array]:
    return lambda params, x: (lax.scan(lambda x, w: (one(w, x), None), x, params)[0] ** 2).mean()


# Steps: (params, state, x) -> (params, state).


def sgd(loss: Callable[[Tree, Array], Array]) -> Callable[..., Any]:
    def step(params: Tree, momentum: Tree, x: Array) -> Any:
        gradient = jax.grad(loss)(params, x)
        momentum = jax.tree.map(lambda m, g: (0.9 * m + g).astype(m.dtype), momentum, gradient)
        return jax.tree.map(lambda p, m: (p - 0.1 * m).astype(p.dtype), params, momentum), momentum

    return step


def adam(loss: Callable[[Tree, Array], Array]) -> Callable[..., Any]:
    def step(params: Tree, state: Tree, x: Array) -> Any:
        gradient = jax.grad(loss)(params, x)
        mu = jax.tree.map(lambda m, g: (0.9 * m + 0.1 * g).astype(m.dtype), state["mu"], gradient)
        nu = jax.tree.map(lambda n, g: (0.99 * n + 0.01 * g * g).astype(n.dtype), state["nu"], gradient)
        params = jax.tree.map(lambda p, m, n: (p - 0.1 * m / (jnp.sqrt(n) + 1e-8)).astype(p.dtype), params, mu, nu)
        return params, {"mu": mu, "nu": nu}

    return step


def decode(params: Tree, cache: Tree, x: Array, at: Array) -> Any:
    """Return a server's step: one token with a cache of keys and values."""
    keys = lax.dynamic_update_slice(cache["k"], (x @ params["k"]).astype(cache["k"].dtype)[:, None], (0, at, 0))
    values = lax.dynamic_update_slice(cache["v"], (x @ params["v"]).astype(cache["v"].dtype)[:, None], (0, at, 0))
    scores = jax.nn.softmax(jnp.einsum("bd,btd->bt", x @ params["q"], keys))
    return jnp.einsum("bt,btd->bd", scores, values) @ params["out"], {"k": keys, "v": values}


def decode_arguments(dtype: Any = jnp.float32, cached: Any = jnp.float32) -> tuple[Any, ...]:
    params = {name: array(256, 256, dtype=dtype) for name in ("q", "k", "v", "out")}
    cache = {name: array(32, 1024, 256, dtype=cached) for name in ("k", "v")}
    return params, cache, array(32, 256, dtype=dtype), array(dtype=jnp.int32)


def step_arguments(batch: int, *, optimizer: Any = sgd, state: Any = jnp.float32, stacked: bool = False) -> Any:
    params = stacked_weights() if stacked else weights()
    one = stacked_weights() if stacked else weights(state)
    return params, {"mu": one, "nu": one} if optimizer is adam else one, array(batch, WIDTH)


def stepped(
    optimizer: Any,
    batch: int,
    loss: Any = None,
    *,
    donated: tuple[int, ...] = (0, 1),
    state: Any = jnp.float32,
    stacked: bool = False,
    options: dict[str, str | bool] | None = None,
) -> Recording:
    """Compile a whole training step of the layers above."""
    arguments = step_arguments(batch, optimizer=optimizer, state=state, stacked=stacked)
    return compiled(optimizer(loss or unrolled()), *arguments, options=options, donate_argnums=donated)


BARRIERS = KEEP_BARRIERS
