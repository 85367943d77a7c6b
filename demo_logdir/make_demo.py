"""Programs that produce the runs of this logdir: python demo_logdir/make_demo.py [RUN ...]

Each run is a profile of a real program, written by jax.profiler.trace on the CPU backend in a new process, so
that it contains the modules of that program only:

    train_step   One step of a small transformer with Adam, then its loss. The state is donated, the layers
                 are named with jax.named_scope and the parameters are a nested dict, so that op_names are
                 paths of the model: params['layer_3']['mlp']['up']. Modules: jit_train_step, jit_loss.
    scan_remat   The same, with the layers as one jax.lax.scan over stacked weights, each rematerialized by
                 jax.checkpoint: the forward and the backward pass are while loops.
    oom          A program that allocates arrays of 200 GiB. RLIMIT_AS makes it fail with RESOURCE_EXHAUSTED,
                 as a full accelerator does, instead of exhausting the machine. The profile of a step that
                 failed still shows how much memory the step needs.

Needs only jax. Weights come from a fixed seed, and source paths are relative to site-packages or to this
repository, so that one version of jax writes the same modules on every machine. Times and thread ids
differ.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LOGDIR = Path(__file__).resolve().parent
SESSION = "cpu"

LAYERS, WIDTH, HEADS, VOCABULARY = 4, 512, 8, 4096
BATCH, LENGTH = 16, 128
LEARNING_RATE, B1, B2, EPSILON = 1e-3, 0.9, 0.999, 1e-8

Params = dict[str, Any]
Batch = dict[str, jax.Array]
Weights = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def init(*, stacked: bool) -> tuple[Params, Params]:
    """Make parameters and Adam's state, by numpy: a JAX module for this would be larger than the step's."""
    rng = np.random.default_rng(0)

    def weights(rows: int, columns: int) -> Weights:
        shape = (LAYERS, rows, columns) if stacked else (rows, columns)
        return rng.standard_normal(shape, np.float32) * np.float32(rows**-0.5)

    def init_layer() -> Params:
        return {
            "attention": {"qkv": weights(WIDTH, 3 * WIDTH), "out": weights(WIDTH, WIDTH)},
            "mlp": {"up": weights(WIDTH, 4 * WIDTH), "down": weights(4 * WIDTH, WIDTH)},
        }

    layers = {"layers": init_layer()} if stacked else {f"layer_{i}": init_layer() for i in range(LAYERS)}
    embedding = rng.standard_normal((VOCABULARY, WIDTH), np.float32) * np.float32(0.02)
    params: Params = {"embedding": embedding, **layers}
    mu, nu = jax.tree.map(np.zeros_like, params), jax.tree.map(np.zeros_like, params)
    state: tuple[Params, Params] = jax.device_put((params, {"mu": mu, "nu": nu, "count": np.int32(0)}))
    return state


def normalize(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def attention(weights: Params, x: jax.Array) -> jax.Array:
    qkv = (x @ weights["qkv"]).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
    q, k, v = jnp.moveaxis(qkv, 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // HEADS) ** -0.5
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    mixed = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    return jnp.matmul(jnp.einsum("bhqk,bkhd->bqhd", mixed, v).reshape(x.shape), weights["out"])


def layer(weights: Params, x: jax.Array) -> jax.Array:
    with jax.named_scope("attention"):
        x = x + attention(weights["attention"], normalize(x))
    with jax.named_scope("mlp"):
        hidden = jax.nn.gelu(jnp.matmul(normalize(x), weights["mlp"]["up"]))
        return x + jnp.matmul(hidden, weights["mlp"]["down"])


def loss(params: Params, batch: Batch) -> jax.Array:
    with jax.named_scope("embedding"):
        x = params["embedding"][batch["tokens"]]
    if "layers" in params:
        x, _ = jax.lax.scan(lambda x, w: (jax.checkpoint(layer)(w, x), None), x, params["layers"])
    else:
        for i in range(LAYERS):
            with jax.named_scope(f"layer_{i}"):
                x = layer(params[f"layer_{i}"], x)
    with jax.named_scope("logits"):
        log_probabilities = jax.nn.log_softmax(normalize(x) @ params["embedding"].T)
    return -jnp.take_along_axis(log_probabilities, batch["targets"][..., None], axis=-1).mean()


def adam(grads: Params, opt_state: Params, params: Params) -> tuple[Params, Params]:
    count: jax.Array = opt_state["count"] + 1
    mu = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, opt_state["mu"], grads)
    nu = jax.tree.map(lambda n, g: B2 * n + (1 - B2) * g * g, opt_state["nu"], grads)

    def update(param: jax.Array, m: jax.Array, n: jax.Array) -> jax.Array:
        return param - LEARNING_RATE * (m / (1 - B1**count)) / (jnp.sqrt(n / (1 - B2**count)) + EPSILON)

    return jax.tree.map(update, params, mu, nu), {"mu": mu, "nu": nu, "count": count}


@partial(jax.jit, donate_argnames=("params", "opt_state"))
def train_step(params: Params, opt_state: Params, batch: Batch) -> tuple[Params, Params, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, batch)
    with jax.named_scope("adam"):
        params, opt_state = adam(grads, opt_state, params)
    return params, opt_state, value


def train(*, stacked: bool) -> None:
    params, opt_state = init(stacked=stacked)
    tokens = np.arange(BATCH * (LENGTH + 1), dtype=np.int32).reshape(BATCH, LENGTH + 1) % VOCABULARY
    batch = jax.device_put({"tokens": tokens[:, :-1], "targets": tokens[:, 1:]})
    params, opt_state, before = train_step(params, opt_state, batch)
    after = jax.jit(loss)(params, batch)
    print(f"loss {before:.3f} -> {after:.3f}")


@jax.jit
def oom() -> jax.Array:
    a = jnp.ones((327680, 327680), dtype=jnp.bfloat16)
    return a @ a


def run_out_of_memory() -> None:
    # 16 GiB of address space: enough for jax and its threads, and a twelfth of one of the arrays.
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    try:
        oom().block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        print(str(error).splitlines()[0])
    else:
        raise SystemExit("oom() allocated 200 GB: no failure")


RUNS: dict[str, Callable[[], None]] = {
    "train_step": partial(train, stacked=False),
    "scan_remat": partial(train, stacked=True),
    "oom": run_out_of_memory,
}


def profile_options() -> jax.profiler.ProfileOptions:
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # a call per Python function would be most of the file
    options.host_tracer_level = 2
    options.session_id = SESSION
    return options


def capture(run: str) -> None:
    """Profile one run in this process, and copy its xplane file, without derived files, into the logdir."""
    with tempfile.TemporaryDirectory() as scratch:
        with jax.profiler.trace(scratch, profiler_options=profile_options()):
            RUNS[run]()
        (profile,) = Path(scratch).glob("plugins/profile/*/*.xplane.pb")
        session = LOGDIR / run / "plugins" / "profile" / SESSION
        session.mkdir(parents=True, exist_ok=True)
        # Without the machine's name, which would add a second host to the run on another machine.
        (session / "localhost.xplane.pb").write_bytes(profile.read_bytes())


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--here"]:
        return capture(arguments[1])
    if unknown := set(arguments) - set(RUNS):
        raise SystemExit(f"no such run: {', '.join(sorted(unknown))}; the runs are {', '.join(RUNS)}")
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": rf".*/site-packages/|{re.escape(str(LOGDIR.parent))}/",
    }
    for run in arguments or RUNS:
        subprocess.run([sys.executable, __file__, "--here", run], check=True, env=environment)


if __name__ == "__main__":
    main(sys.argv[1:])
