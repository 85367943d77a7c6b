"""Steps of users, written to files for the tests of `fit`."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from threading import Event

from tb_memplugin.fit.compile_task import Compiled, CompileTask, Limits
from tb_memplugin.fit.compiling.compiling import compile_task
from tb_memplugin.model.fit import Candidate, Knob

STEP = """
import jax, jax.numpy as jnp

def step(devices, batch=8):
{body}
    return jax.jit(lambda x: jnp.tanh(x) @ x.T), (jax.ShapeDtypeStruct((batch, 1024), jnp.float32),)
"""


def write_step(folder: Path, body: str = "", name: str = "user_step.py") -> str:
    """Write a step that runs the body before it returns a small program, and return its FILE.py:FUNCTION."""
    path = folder / name
    path.write_text(STEP.format(body=indent(dedent(body), "    ")))
    return f"{path}:step"


def write_code(folder: Path, code: str, name: str = "user_step.py") -> str:
    """Write a file with a function `step`, and return its FILE.py:FUNCTION."""
    path = folder / name
    path.write_text(dedent(code))
    return f"{path}:step"


def compile_step(step: str, limits: Limits | None = None, target: str = "cpu:1", **knobs: Knob) -> Compiled:
    """Compile a step in this machine's processes."""
    return compile_here(CompileTask(Candidate(step, target, tuple(knobs.items())), limits or Limits()))


def compile_here(task: CompileTask) -> Compiled:
    """Compile a candidate in this machine's processes. Nothing stops it."""
    return compile_task(task, Event())


# It dumps its program to a folder while it is lowered.
DUMPED_STEP = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

def step(devices):
    mesh = Mesh(np.array(devices), ("data",))
    whole, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))
    weight = jax.ShapeDtypeStruct((1024, 1024), jnp.float32, sharding=whole)
    batch = jax.ShapeDtypeStruct((64, 1024), jnp.float32, sharding=split)

    def train(state, batch):
        network = lambda w: (jnp.tanh(jnp.tanh(batch @ w["a"]) @ w["b"]) ** 2).mean()
        loss, gradients = jax.value_and_grad(network)(state["w"])
        momentum = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradients)
        return {{"w": jax.tree.map(lambda w, m: w - 1e-3 * m, state["w"], momentum), "m": momentum}}, loss

    weights = {{"a": weight, "b": weight}}
    state = {{"w": weights, "m": weights}}
    lowered = jax.jit(train, out_shardings=(whole, None)).lower(state, batch)
    lowered.compile({{"xla_dump_to": {folder!r}, "xla_dump_hlo_as_proto": True}})
    return lowered
"""


def dumped(folder: Path) -> str:
    """Return the program of a dump as a step."""
    (file,) = folder.glob("*.before_optimizations.hlo.pb")
    return f"{file}:jit_train"
