"""The step of v5e_out_of_memory, mended as the page advises: PYTHONPATH=tests python demo_logdir/make_mended_demo.py

    v5e_mended          Batch 256 in four microbatches of 64, with the state donated. It fits into the 15.75 GiB.

Needs what make_accelerator_demo.py needs.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import make_accelerator_demo as demo
from make_accelerator_demo import Params, loss

RUNS = {"v5e_mended": ("v5e", 256)}
MICROBATCHES = 4


def mean_gradients(params: Params, tokens: jax.Array) -> Any:
    parts = tokens.reshape(MICROBATCHES, -1, *tokens.shape[1:])

    def add(total: Any, part: jax.Array) -> Any:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(params, part)), None

    zeros = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
    total, _ = jax.lax.scan(add, zeros, parts)
    return jax.tree.map(lambda a: a / MICROBATCHES, total)


@partial(jax.jit, donate_argnames=("params", "opt_state"))
def train_step(params: Params, opt_state: Params, tokens: jax.Array) -> tuple[Params, Params, jax.Array]:
    value, grads = mean_gradients(params, tokens)
    with jax.named_scope("adam"):
        count = opt_state["count"] + 1
        mu = jax.tree.map(lambda m, g: demo.B1 * m + (1 - demo.B1) * g, opt_state["mu"], grads)
        nu = jax.tree.map(lambda v, g: demo.B2 * v + (1 - demo.B2) * g * g, opt_state["nu"], grads)
        rate = demo.LEARNING_RATE * jnp.sqrt(1 - demo.B2**count) / (1 - demo.B1**count)
        params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + demo.EPSILON), params, mu, nu)
    return params, {"mu": mu, "nu": nu, "count": count}, value


if __name__ == "__main__":
    demo.RUNS.update(RUNS)
    demo.train_step = train_step
    if sys.argv[1:2] == ["--child"]:
        demo.compile_run(sys.argv[2], Path(sys.argv[3]))
    else:
        demo.make_run(next(iter(RUNS)), __file__)
