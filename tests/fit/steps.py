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
