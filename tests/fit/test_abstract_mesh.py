"""Shapes that `jax.eval_shape` makes under `jax.set_mesh` are on an abstract mesh: they go to the target's devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("jax")

from tb_memplugin.cli import main

STEP = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

def step(devices, abstract=True):
    mesh = Mesh(np.array(devices).reshape(2, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    jax.set_mesh(mesh)

    def init():
        return [jax.sharding.reshard(jnp.ones((512, 512)), P(None, "model")) for _ in range(4)]

    def train(params, x):
        def loss(params):
            hidden = x
            for weight in params:
                hidden = jnp.tanh(jnp.einsum("bd,df->bf", hidden, weight, out_sharding=P("data", None)))
            return (hidden ** 2).mean()
        value, gradients = jax.value_and_grad(loss)(params)
        return [weight - gradient for weight, gradient in zip(params, gradients)], value

    params = jax.eval_shape(init)
    if not abstract:
        placed = NamedSharding(mesh, P(None, "model"))
        params = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=placed) for each in params]
    x = jax.ShapeDtypeStruct((8, 512), jnp.float32, sharding=NamedSharding(mesh, P("data", None)))
    return jax.jit(train, donate_argnums=0), (params, x)
"""


@pytest.mark.slow
def test_shapes_on_an_abstract_mesh_are_placed_on_the_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "abstract.py").write_text(STEP)
    words = ["--on", "cpu:4", "--vary", "abstract=true,false", "--json", "--no-cache"]
    main(["fit", f"{tmp_path / 'abstract.py'}:step", *words])
    first, second = json.loads(capsys.readouterr().out)["candidates"]
    assert first["error"] is second["error"] is None
    assert first["reserved_bytes"] == second["reserved_bytes"] > 1 << 20
