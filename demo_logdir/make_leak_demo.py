"""Programs that produce the runs with memory over time: python demo_logdir/make_leak_demo.py [RUN ...]

They are the same training loop twice, recorded by tb_memplugin.capture.track on the CPU backend, in new processes:

    leak         The list of metrics keeps each step's activations, for a histogram later: 2 MiB more every step.
    leak_mended  The list keeps the histogram, a few numbers on the host: memory is the same after every step.

A separate script, because the other runs contain line numbers of make_demo.py. Needs jax and tb_memplugin.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import make_demo
import numpy as np

from tb_memplugin.capture import track

STEPS, BATCH, WIDTH, HIDDEN = 24, 256, 512, 2048
ACTIVATIONS = BATCH * HIDDEN * 4  # bytes that the leak keeps of each step
LEARNING_RATE = 1e-3

Params = dict[str, jax.Array]
Counts = np.ndarray[tuple[int], np.dtype[np.int64]]


def init() -> Params:
    rng = np.random.default_rng(0)
    shapes = {"up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
    return {
        name: jax.device_put(rng.standard_normal(shape, np.float32) * np.float32(0.02))
        for name, shape in shapes.items()
    }


def loss(params: Params, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
    activations = jax.nn.gelu(batch @ params["up"])
    return jnp.mean((activations @ params["down"] - batch) ** 2), activations


@partial(jax.jit, donate_argnames="params")
def train_step(params: Params, batch: jax.Array) -> tuple[Params, jax.Array, jax.Array]:
    (value, activations), grads = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda param, grad: param - LEARNING_RATE * grad, params, grads), value, activations


def train(keep: Callable[[jax.Array], jax.Array | Counts]) -> None:
    rng = np.random.default_rng(1)
    metrics = []
    with track(interval=None) as tracker:  # at steps only: the same events in every run
        params = init()
        for number in range(STEPS):
            with tracker.step(number):
                batch = jax.device_put(rng.standard_normal((BATCH, WIDTH), np.float32))
                params, value, activations = train_step(params, batch)
                metrics.append((float(value), keep(activations)))
    print(f"loss {metrics[0][0]:.3f} -> {metrics[-1][0]:.3f}")


def everything(activations: jax.Array) -> jax.Array:
    return activations


def histogram(activations: jax.Array) -> Counts:
    return np.histogram(np.asarray(activations), bins=32)[0]


RUNS: dict[str, Callable[[], None]] = {
    "leak": partial(train, everything),
    "leak_mended": partial(train, histogram),
}


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--here"]:
        make_demo.RUNS.update(RUNS)
        return make_demo.capture(arguments[1])
    if unknown := set(arguments) - set(RUNS):
        raise SystemExit(f"no such run: {', '.join(sorted(unknown))}; the runs are {', '.join(RUNS)}")
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": (
            rf".*/site-packages/|{re.escape(str(make_demo.LOGDIR.parent))}/"
        ),
    }
    for run in arguments or RUNS:
        subprocess.run([sys.executable, __file__, "--here", run], check=True, env=environment)


if __name__ == "__main__":
    main(sys.argv[1:])
