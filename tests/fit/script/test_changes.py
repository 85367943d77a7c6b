"""`--try` of a script: its step is changed as a function with `devices` is, and needs as much then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from fit.script.test_scripts import COMPILERS

from tb_memplugin.cli import main

HEAD = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
WIDTH, LAYERS = 1024, 6

def placed(devices):
    mesh = Mesh(np.array(devices), ("data",))
    return (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))

def train(state, batch, unused):
    def network(weights):
        hidden, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), batch, weights)
        return (hidden ** 2).mean()
    loss, gradient = jax.value_and_grad(network)(state["w"])
    momentum = 0.9 * state["m"] + 0.1 * gradient
    return {"w": state["w"] - 1e-3 * momentum, "m": momentum}, loss

def jitted(whole):
    return jax.jit(train, out_shardings=(whole, None), keep_unused=True)
"""
FUNCTION = """
def step(devices, batch=2048, microbatches=1):
    whole, split = placed(devices)
    weights = jax.ShapeDtypeStruct((LAYERS, WIDTH, WIDTH), jnp.float32, sharding=whole)
    rows = jax.ShapeDtypeStruct((batch // microbatches, WIDTH), jnp.float32, sharding=split)
    unused = jax.ShapeDtypeStruct((1024, 1024), jnp.float32, sharding=whole)
    return jitted(whole), ({"w": weights, "m": weights}, rows, unused)
"""
SCRIPT = """
whole, split = placed(jax.devices())
weights = jax.device_put(np.zeros((LAYERS, WIDTH, WIDTH), np.float32), whole)
state, unused = {"w": weights, "m": weights + 0}, jax.device_put(np.zeros((1024, 1024), np.float32), whole)
while True:
    rows = np.ones((int(sys.argv[1]) // int(sys.argv[2]), WIDTH), np.float32)
    state, loss = jitted(whole)(state, jax.device_put(rows, split), unused)
"""
KNOBS = ("--set", "batch=2048", "--set", "microbatches=1")


def tried(capsys: pytest.CaptureFixture[str], step: str, target: str, *words: str) -> dict[tuple[str, ...], Any]:
    """Return the pieces of advice by their changes: their saving, and why one could not be compiled."""
    main(["fit", step, "--on", target, "--budget", "1GiB", "--json", "--no-cache", "--try", *KNOBS, *words])
    found = json.loads(capsys.readouterr().out)
    assert found["candidates"][0]["error"] is None
    return {tuple(one["changes"]): (one["saving_bytes"], one["error"]) for one in found["tried"]}


@pytest.mark.slow
@pytest.mark.parametrize("target", COMPILERS)
def test_a_changed_script_needs_what_the_changed_function_needs(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if COMPILERS[target]:
        pytest.importorskip(COMPILERS[target])
    function, script = tmp_path / "function.py", tmp_path / "train.py"
    function.write_text(HEAD + FUNCTION)
    script.write_text(HEAD + SCRIPT)
    of_function = tried(capsys, f"{function}:step", target)
    of_script = tried(capsys, str(script), target, "--", "{batch}", "{microbatches}")
    found = {change for changes in of_function for change in changes}
    assert {"donate:state", "drop-unused"} | ({"remat:full"} if target == "cpu:4" else set()) <= found
    assert found & {"shard:4:state", "shard:data:state"}  # since JAX 0.12, programs name the axes of their mesh
    assert of_script == of_function
