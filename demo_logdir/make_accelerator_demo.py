"""Dumps of programs compiled for accelerators: PYTHONPATH=tests python demo_logdir/make_accelerator_demo.py [RUN ...]

Each run is what XLA writes when it compiles one training step of a transformer with Adam, as with
XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'. The compiler needs no accelerator, only its description:

    v5e_train_step      For one chip of a TPU v5e, whose HBM has 15.75 GiB for programs. The state is not donated.
    v5e_out_of_memory   The same with a batch of 256. The compiler refuses it, with its dump and compile.oom.txt.
    h100_train_step     The same step for an NVIDIA H100 with 80 GB.

Needs jax 0.12, libtpu and jax-cuda12-plugin. Kept are the program, the chip's description and XLA's report, compressed.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding
from programs.targets import target_devices

from tb_memplugin.fit.compiling.child import ENVIRONMENT
from tb_memplugin.fit.compiling.compiling import is_assigned

LOGDIR = Path(__file__).resolve().parent
RUNS = {"v5e_train_step": ("v5e", 8), "v5e_out_of_memory": ("v5e", 256), "h100_train_step": ("h100", 8)}
KEPT = (
    "after_optimizations.hlo.pb", "after_optimizations-memory-usage-report.txt", "target_arguments.txt",
    "gpu_target_config.pbtxt",
)  # fmt: skip
MAX_PLAIN = 1024  # bytes of files that are not compressed

LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH = 4, 1024, 16, 32768, 512
LEARNING_RATE, B1, B2, EPSILON = 1e-3, 0.9, 0.999, 1e-8

Params = dict[str, Any]


def init() -> tuple[Params, Params]:
    """Return parameters and Adam's state, of zeros: only their shapes are compiled."""
    layer = {
        "attention": {"qkv": jnp.zeros((WIDTH, 3 * WIDTH)), "out": jnp.zeros((WIDTH, WIDTH))},
        "mlp": {"up": jnp.zeros((WIDTH, 4 * WIDTH)), "down": jnp.zeros((4 * WIDTH, WIDTH))},
    }
    params = {"embedding": jnp.zeros((VOCABULARY, WIDTH))} | {f"layer_{i}": layer for i in range(LAYERS)}
    return params, {"mu": params, "nu": params, "count": jnp.zeros((), jnp.int32)}


def normalize(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def attention(weights: Params, x: jax.Array) -> Any:
    qkv = (x @ weights["qkv"]).reshape(*x.shape[:2], 3, HEADS, WIDTH // HEADS)
    q, k, v = jnp.moveaxis(qkv, 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // HEADS) ** -0.5
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    mixed = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", mixed, v).reshape(x.shape) @ weights["out"]


def mlp(weights: Params, x: jax.Array) -> Any:
    return jax.nn.gelu(x @ weights["up"]) @ weights["down"]


def loss(params: Params, tokens: jax.Array) -> jax.Array:
    x = params["embedding"][tokens[:, :-1]]
    for i in range(LAYERS):
        with jax.named_scope(f"layer_{i}"):
            x = x + attention(params[f"layer_{i}"]["attention"], normalize(x))
            x = x + mlp(params[f"layer_{i}"]["mlp"], normalize(x))
    with jax.named_scope("logits"):
        logits = jax.nn.log_softmax(normalize(x) @ params["embedding"].T)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1))


@jax.jit
def train_step(params: Params, opt_state: Params, tokens: jax.Array) -> tuple[Params, Params, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, tokens)
    with jax.named_scope("adam"):
        count = opt_state["count"] + 1
        mu = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, opt_state["mu"], grads)
        nu = jax.tree.map(lambda v, g: B2 * v + (1 - B2) * g * g, opt_state["nu"], grads)
        rate = LEARNING_RATE * jnp.sqrt(1 - B2**count) / (1 - B1**count)
        params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPSILON), params, mu, nu)
    return params, {"mu": mu, "nu": nu, "count": count}, value


def compile_run(run: str, folder: Path) -> None:
    """Compile the step of a run, with a dump to a folder; an error goes to a file beside it."""
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r".*/(?=demo_logdir/)|.*/site-packages/")
    target, batch = RUNS[run]
    sharding = SingleDeviceSharding(target_devices(target)[0])

    def place(a: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding)

    params, opt_state = jax.tree.map(place, jax.eval_shape(init))
    lowered = train_step.lower(params, opt_state, place(jax.ShapeDtypeStruct((batch, LENGTH + 1), jnp.int32)))
    try:
        lowered.compile({"xla_dump_to": str(folder), "xla_dump_hlo_as_proto": True, "xla_dump_hlo_as_text": True})
    except jax.errors.JaxRuntimeError as error:
        (folder / "compile.oom.txt").write_text(f"jax.errors.JaxRuntimeError: {error}\n")


def make_run(run: str, script: str = __file__) -> None:
    """Compile a run in a process of its own, and keep the files of the step that a reader needs."""
    with tempfile.TemporaryDirectory() as name:
        dump, kept = Path(name), LOGDIR / run
        child = subprocess.Popen([sys.executable, script, "--child", run, name], env=os.environ | ENVIRONMENT)
        while child.poll() is None and not is_assigned(dump):
            time.sleep(0.1)
        child.kill()  # what follows the buffer assignment is code generation
        child.wait()
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for path in sorted(dump.iterdir()):
            if path.is_dir() and "jit_train_step" in path.name:
                (kept / path.name).mkdir()
                keep(path / "topology.pb", kept / path.name)
            elif path.name == "compile.oom.txt" or ("jit_train_step" in path.name and path.name.endswith(KEPT)):
                keep(path, kept)


def keep(path: Path, folder: Path) -> None:
    """Copy a file into a folder, compressed if it is large."""
    data = path.read_bytes()
    if len(data) <= MAX_PLAIN:
        (folder / path.name).write_bytes(data)
    else:
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(data, compresslevel=9, mtime=0))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        compile_run(sys.argv[2], Path(sys.argv[3]))
    else:
        for name in sys.argv[1:] or RUNS:
            make_run(name)
