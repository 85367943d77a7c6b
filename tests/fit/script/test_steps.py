"""Which function of a script is its step, and what else of the script takes memory while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from fit.script.test_scripts import candidate, fit, run

MB = 1 << 20
STATE = "params = jax.jit(init)()\nx = jnp.ones((8, WIDTH))\nstep = jax.jit(train_step)\n"
STATE_BYTES = 8 * 1536 * 1536 * 4


def step_of(found: dict[str, Any]) -> str:
    assert found["error"] is None, found["error"]
    line = next(each for each in found["caveats"] if each.startswith("The step of the script is "))
    return str(line).removeprefix("The step of the script is ").partition(" (")[0]


@pytest.mark.slow
def test_an_evaluation_before_the_first_step_is_not_the_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STATE + (
        "def evaluate(params, x): return train_step(params, x)[1]\n"
        "for _ in range(5): jax.jit(evaluate)(params, x)\n"
        "while True: params, loss = step(params, x)\n"
    )
    assert step_of(run(tmp_path, capsys, text)) == "train_step"


@pytest.mark.slow
def test_a_script_that_fails_before_its_step_is_not_answered_with_the_initialization(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = run(tmp_path, capsys, STATE + "open('/no/such/data')")["error"]
    assert "reads /no/such/data, which is missing" in error and "--jit: init (" in error
    assert "ValueError: odd" in run(tmp_path, capsys, STATE + "raise ValueError('odd')")["error"]


@pytest.mark.slow
def test_arrays_beside_the_step_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = "while True: params, loss = step(params, x)\n"
    alone = run(tmp_path, capsys, STATE + loop)
    beside = run(tmp_path, capsys, STATE + "average = jax.jit(lambda p: [a * 1 for a in p])(params)\n" + loop)
    assert step_of(alone) == step_of(beside) == "train_step"
    assert 0 <= beside["reserved_bytes"] - alone["reserved_bytes"] - STATE_BYTES < 1024  # such as a loss
    assert any("72.0 MiB of it are in other arrays" in each for each in beside["caveats"])


@pytest.mark.slow
def test_another_function_that_needs_more_than_the_step_is_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The gradients do most of the work, and the update has three more copies of the state in memory."""
    text = STATE + (
        "def gradients(params, x):\n"
        "    for _ in range(40): x = jnp.tanh(x)\n"
        "    return train_step(params, x)[0]\n"
        "def update(params, first, second, grads): return params, first, second, grads\n"
        "first, second = ([jnp.zeros_like(each) for each in params] for _ in range(2))\n"
        "while True: params, first, second, _ = jax.jit(update)(params, first, second, jax.jit(gradients)(params, x))\n"
    )
    found = run(tmp_path, capsys, text)
    assert step_of(found) == "gradients"
    assert any("The most is needed by update, not by the step" in each for each in found["caveats"])
    assert 8 * STATE_BYTES <= found["reserved_bytes"] < 9.5 * STATE_BYTES


@pytest.mark.slow
def test_functions_compiled_ahead_of_time_are_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = STATE + (
        "step = step.lower(params, x).compile()\nstep.cost_analysis(), step.memory_analysis()\n"
        "while True: params, loss = step(params, x)\n"
    )
    assert step_of(run(tmp_path, capsys, text)) == "train_step"


@pytest.mark.slow
def test_large_transfers_take_no_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "from jax.sharding import *\n"
        "mesh = Mesh(np.array(jax.devices()), 'x')\n"
        "make = jax.jit(lambda: jnp.ones((1 << 15, 1 << 15)), out_shardings=NamedSharding(mesh, P('x')))\n"
        "x = jax.device_put(make(), NamedSharding(mesh, P()))\n"
        "jax.config.update('jax_transfer_guard', 'disallow')\n"
        "def step(x): return x * 2 + 1\n"
        "while True: x = jax.jit(step)(x)\n"
    )
    script = tmp_path / "train.py"
    script.write_text("import jax, jax.numpy as jnp, numpy as np\n" + text.replace("P(", "PartitionSpec("))
    found = candidate(fit(capsys, script, "--on", "cpu:8", "--memory", "4GiB"))
    assert step_of(found) == "step" and found["reserved_bytes"] >= 8 << 30


@pytest.mark.slow
def test_a_number_that_a_large_function_computes_is_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "def size(x): return x * 2, jnp.int32(x.sum())\n"
        "_, number = jax.jit(size)(jnp.ones((1 << 23,)))\n"
        "x = jnp.ones((int(number), 1 << 20)); del _, number\n"
        "def step(x): return jnp.sin(x) * 2 + 1\n"
        "while True: x = jax.jit(step)(x)\n"
    )
    found = run(tmp_path, capsys, text, "--assume", "size=64", "--")
    assert step_of(found) == "step" and found["reserved_bytes"] >= 2 * 64 * 4 * MB
    assert any("64 was assumed: --assume size=NUMBER" in each for each in found["caveats"])


@pytest.mark.slow
def test_kernels_of_one_platform_are_not_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libtpu")
    text = (
        "from jax.experimental import pallas as pl\n"
        "def kernel(x, y): y[...] = x[...] * 2\n"
        "double = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((512, 512), jnp.float32))\n"
        "scale = jax.jit(double)(jnp.ones((512, 512)))\n"
        "def step(state): return state + jnp.tile(double(state[:512, :512]), (8, 8))\n"
        "state = jnp.ones((4096, 4096))\n"
        "while True: state = jax.jit(step)(state)\n"
    )
    script = tmp_path / "train.py"
    script.write_text("import jax, jax.numpy as jnp\n" + text)
    found = candidate(fit(capsys, script, "--on", "v5e:2x2"))
    assert step_of(found) == "step" and found["reserved_bytes"] >= 128 * MB
