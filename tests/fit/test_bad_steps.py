"""Steps that cannot be compiled: one line that says what and the remedy, and the user's own traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fit.steps import compile_step, write_code

pytest.importorskip("jax")
BEGIN = """
import functools
import jax, jax.numpy as jnp, numpy as np
shape = jax.ShapeDtypeStruct((1024, 64), "float32")
f = jax.jit(lambda x, y=1: x @ x.T)
"""

BAD = {
    "def step(devices): raise ValueError('no such thing')": r"ValueError: no such thing \(user_step.py:\d+\)",
    "def step(devices): import no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
    "def step(devices): return None": "returned nothing: .*return jax.jit",
    "def step(devices): return 3": "returned an int",
    "def step(devices): return f": "returned a PjitFunction",
    "def step(devices): return f, (shape,), {}, 3": "a tuple of 4",
    "def step(devices): return (lambda x: x), (shape,)": "not jitted: .*jax.jit",
    "def step(devices): return f, shape": "ShapeDtypeStruct.*as a tuple",
    "def step(devices): return f, (shape,), [3]": "a list.*as a dict",
    "def step(devices): return f.lower(shape).compile()": "compiled function.*before .compile",
    "def step(devices, batch=8): return f, (shape,)": "No such knob: lr: the step has batch",
    "def step(): return f, (shape,)": "no argument for the devices",
    "def step(devices, layers, *, batch=3, **more): return f, (shape,)": "without a value: layers: add --set layers",
    "step = f": "is jitted itself",
    "class step: pass": "is a class",
    "step = 3": "No such function",
    "def step(devices): jnp.zeros((3,)).reshape(2)": "TypeError: cannot reshape",
    "def step(devices): return f, (shape, 'text', 3, 4)": "Error",
    "def step(devices): np.array(jax.devices()).reshape(3, 5)": r"calls jax.devices\(\): use the argument `devices`",
    "import sys\ndef step(devices): sys.exit(3)": "SystemExit: 3",
    "def step(devices): f.lower(3)": "ValueError: matmul input",
}


@pytest.mark.parametrize("code", BAD)
def test_a_mistake_is_one_line(code: str, tmp_path: Path) -> None:
    step = write_code(tmp_path, BEGIN + code)
    outcome = (compile_step(step, lr=3) if "No such knob" in BAD[code] else compile_step(step)).outcome
    assert re.search(BAD[code], outcome.error) and "\n" not in outcome.error
    assert "tb_memplugin/fit" not in outcome.traceback and "Traceback" not in outcome.error


GOOD = {
    "def step(devices): return f, (shape,)": 1,
    "def step(devices): return f, [shape]": 1,
    "def step(devices): return f, (shape,), {'y': shape}": 1,
    "def step(devices): return f, (np.zeros((1024, 64), np.float32),)": 1,
    "def step(devices): return f, (jnp.zeros((1024, 64)),)": 1,
    "def step(devices): return f.lower(shape)": 1,
    "def step(devices): return f.trace(shape)": 1,
    "step = functools.partial(lambda devices, n: (f, (shape,)), n=3)": 1,
    "class Step:\n    def __call__(self, devices): return f, (shape,)\nstep = Step()": 1,
    "def decorate(g):\n    return lambda *a, **k: g(*a, **k)\n@decorate\ndef step(devices): return f, (shape,)": 1,
    "async def other(): pass\ndef step(devices, /, *, n=3): return f, (shape,)": 1,
}  # fmt: skip


@pytest.mark.parametrize("code", GOOD)
def test_what_a_step_may_be_and_return(code: str, tmp_path: Path) -> None:
    outcome = compile_step(write_code(tmp_path, BEGIN + code)).outcome
    assert outcome.error == "" and (outcome.reserved_bytes or 0) >= 1024 * 1024 * 4


def test_the_users_traceback_is_whole(tmp_path: Path) -> None:
    code = """
        def inner(): raise ValueError('no')
        def step(devices):
            try: inner()
            except ValueError as error: raise KeyError('x') from error
    """
    found = compile_step(write_code(tmp_path, code)).outcome.traceback
    assert found.startswith("Traceback") and found.rstrip().endswith("KeyError: 'x'")
    assert "in inner" in found and "direct cause" in found and "in step" in found and "child.py" not in found


def test_a_syntax_error_in_a_module_beside_the_step_is_shown(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    outcome = compile_step(write_code(tmp_path, "import broken")).outcome
    assert "SyntaxError" in outcome.error and "broken.py" in outcome.traceback


def test_a_missing_compiler_has_the_command_that_installs_it(tmp_path: Path) -> None:
    step = write_code(tmp_path, BEGIN + "def step(devices): return f, (shape,)")
    for target, module, command in (
        ("v5e:2x2", "libtpu", r"pip install 'tb-memplugin\[tpu\]'"),
        ("h100:8", "jax_cuda12_plugin", r"pip install 'jax\[cuda12\]'"),
    ):
        try:
            __import__(module)
        except ImportError:
            assert re.search(command, compile_step(step, target=target).outcome.error)


def test_a_step_without_shardings_is_said_to_use_one_device(tmp_path: Path) -> None:
    step = write_code(tmp_path, BEGIN + "def step(devices): return f, (shape,)")
    assert "devices:" not in "".join(compile_step(step, target="cpu:1").outcome.caveats)
    assert "1 of 4 devices" in "".join(compile_step(step, target="cpu:4").outcome.caveats)
