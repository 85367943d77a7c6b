"""Small JAX programs compiled ahead of time for the CPU, one for each kind of control flow. Nothing runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from tb_memplugin.protos.hlo_pb2 import HloProto

# JAX leaves these two without types.
configuration: Any = jax.config
Shaped: Any = jax.ShapeDtypeStruct

configuration.update("jax_platforms", "cpu")

Carry = tuple[Array, Array]


@dataclass(frozen=True)
class AheadOfTime:
    """A program as two HloProtos: XLA's dump has heap-simulator traces, the one that JAX returns has none."""

    traced: bytes
    untraced: bytes
    peak_memory_in_bytes: int | None  # JAX's own analysis of the version without traces; None where this JAX has none


def array(*shape: int) -> Any:
    return Shaped(shape, jnp.float32)


def hlo_proto(compiled: Any) -> bytes:
    """Return a compiled function in the format of profiles, with the buffer assignment that JAX itself uses."""
    proto = HloProto()
    proto.hlo_module.ParseFromString(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    proto.buffer_assignment.ParseFromString(compiled.memory_analysis().serialized_buffer_assignment_proto)
    return proto.SerializeToString()


@cache
def ahead_of_time(name: str) -> AheadOfTime:
    """Compile one of PROGRAMS."""
    function, arguments, donated = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, str | bool] = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True}
        if name in BARRIERS:
            options |= KEEP_BARRIERS
        lowered = jax.jit(function, donate_argnums=donated).lower(*arguments)
        compiled = lowered.compile(compiler_options=options)
        (dump,) = Path(folder).glob("*after_optimizations.hlo.pb")
        traced = dump.read_bytes()
    analysis = compiled.memory_analysis()
    return AheadOfTime(traced, hlo_proto(compiled), getattr(analysis, "peak_memory_in_bytes", None))


def scan(weights: Array, x: Array) -> Any:
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum()), x, weights)


def scan_gradient(weights: Array, x: Array) -> Any:
    return jax.grad(lambda w: scan(w, x)[0].sum())(weights)


def scan_remat(weights: Array, x: Array) -> Any:
    layer = jax.checkpoint(lambda c, w: (jnp.tanh(jnp.sin(c @ w) @ w), None))
    return jax.value_and_grad(lambda w: lax.scan(layer, x, w)[0].sum())(weights)


def while_swap(x: Array, y: Array) -> Any:
    return lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[2] @ c[1], c[1]), (0, x, y))


def while_condition_works(x: Array) -> Any:
    return lax.while_loop(lambda c: jnp.tanh(c @ c).sum() < 3, lambda c: jnp.sin(c) @ c, x)


def nested_gradient(weights: Array, x: Array) -> Any:
    def outer(c: Array, w: Array) -> Carry:
        d, _ = lax.scan(lambda d, _: (jnp.tanh(d @ d) + 1, None), c @ w, None, length=3)
        return d, d.sum()

    return jax.grad(lambda w: lax.scan(outer, x, w)[1].sum())(weights)


def switch(x: Array, i: Array) -> Any:
    return lax.switch(i, [lambda x: x @ x, lambda x: jnp.sin(x) @ x.T, lambda x: x], x) @ x


def branches_alias(x: Array, i: Array) -> Any:
    y = x @ x
    a, b = lax.switch(i, [lambda y: (y, y), lambda y: (y, x), lambda y: (x @ y, y)], y)
    return a @ b, y


def while_in_branch(x: Array) -> Any:
    def loop(x: Array) -> Any:
        return lax.fori_loop(0, 5, lambda _, c: jnp.tanh(c @ c), x)

    def branch(x: Array) -> Any:
        return lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x * 2, x)

    return lax.cond(x.sum() > 0, loop, branch, x)


def branch_in_while(x: Array) -> Any:
    return lax.fori_loop(0, 5, lambda i, c: lax.cond(i > 2, lambda c: jnp.tanh(c @ c) @ c, lambda c: c.T + 1, c), x)


def three_deep(x: Array) -> Any:
    def middle(i: Array, c: Carry) -> Any:
        def loop(c: Carry) -> Any:
            return lax.while_loop(lambda d: d[0].sum() < 3, lambda d: (d[1] @ d[0], d[0] + 1), c)

        return lax.cond(i > 1, lambda c: (c[1], jnp.tanh(c[0] @ c[1])), loop, c)

    return lax.fori_loop(0, 4, lambda _, c: lax.fori_loop(0, 3, middle, (c[0] @ c[1], c[0])), (x, x + 1))


def update_in_place(x: Array) -> Any:
    def step(i: Array, c: Array) -> Array:
        return lax.dynamic_update_slice(c, jnp.tanh(lax.dynamic_slice(c, (i, 0), (1, 64))), (i + 1, 0))

    return lax.fori_loop(0, 8, step, x)


def adam(state: dict[str, Array], x: Array) -> Any:
    gradient = jax.grad(lambda w: jnp.tanh(x @ w).sum())(state["w"])
    m = 0.9 * state["m"] + 0.1 * gradient
    v = 0.99 * state["v"] + 0.01 * gradient * gradient
    return {"w": state["w"] - m / (jnp.sqrt(v) + 1e-8), "m": m, "v": v}


def swapped(x: Array, y: Array) -> Any:
    return y + 1, x @ y


@jax.custom_vjp
def twice(x: Array) -> Array:
    return jnp.sin(x) @ x


twice.defvjp(lambda x: (twice(x), (x, jnp.cos(x))), lambda r, g: (g @ r[1].T + r[0].T @ g,))


def custom_vjp(x: Array) -> Any:
    return jax.grad(lambda x: twice(twice(x)).sum())(x)


def remat(weights: list[Array], x: Array) -> Any:
    def loss(weights: list[Array]) -> Array:
        y = x
        for w in weights:
            y = jax.checkpoint(lambda y, w: jnp.tanh(jnp.sin(y @ w) @ w))(y, w)
        return y.sum()

    return jax.value_and_grad(loss)(weights)


def sort(x: Array) -> Any:
    return jnp.sort(x), jnp.argsort(x), jnp.cumsum(x)


# The CPU's compiler drops the barriers that keep a recomputed value apart from the first; an accelerator's does not.
KEEP_BARRIERS: dict[str, str | bool] = {"xla_disable_hlo_passes": "cse_barrier_expander"}
BARRIERS = {"remat_barriers"}

X, LAYERS, INDEX = array(64, 64), array(4, 64, 64), Shaped((), jnp.int32)

# Name -> function, its arguments, the numbers of the donated ones.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]] = {
    "scan": (scan, (LAYERS, X), ()),
    "scan_gradient": (scan_gradient, (LAYERS, X), ()),
    "scan_remat": (scan_remat, (LAYERS, X), ()),
    "while_swap": (while_swap, (X, X), ()),
    "while_condition_works": (while_condition_works, (X,), ()),
    "nested_gradient": (nested_gradient, (LAYERS, X), ()),
    "switch": (switch, (X, INDEX), ()),
    "branches_alias": (branches_alias, (X, INDEX), ()),
    "while_in_branch": (while_in_branch, (X,), ()),
    "branch_in_while": (branch_in_while, (X,), ()),
    "three_deep": (three_deep, (X,), ()),
    "update_in_place": (update_in_place, (X,), ()),
    "adam_donated": (adam, ({"w": array(96, 96), "m": array(96, 96), "v": array(96, 96)}, array(32, 96)), (0,)),
    "swapped_donated": (swapped, (X, X), (0, 1)),
    "custom_vjp": (custom_vjp, (X,), ()),
    "remat_barriers": (remat, ([X] * 4, array(128, 64)), ()),
    "remat": (remat, ([X] * 4, array(128, 64)), ()),
    "sort": (sort, (array(256),), ()),
}
