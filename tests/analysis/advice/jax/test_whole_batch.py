"""Advice on a batch that is whole on each device, from a process with eight CPU devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

from support.servers import REPOSITORY, TESTS

CODE = """
import json, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from support.advised import LAYERS, WIDTH, Shaped, compiled, layer, sgd, unrolled
from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.usage.live_bytes import peak

mesh = Mesh(np.array(jax.devices()), ("d",))

def sharded(spec, *shape):
    return Shaped(shape, np.float32, sharding=NamedSharding(mesh, spec))

def whole(weights, x):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P()))  # as where XLA chooses so
    return layer(weights, x)

one = {"up": sharded(P(), WIDTH, 2 * WIDTH), "down": sharded(P(), 2 * WIDTH, WIDTH)}
weights = {f"layer_{i}": one for i in range(LAYERS)}
answer = {}
for name, body in {"whole": whole, "split": layer}.items():
    made = compiled(sgd(unrolled(body)), weights, weights, sharded(P("d"), 8192, WIDTH), donate_argnums=(0, 1))
    found = [piece for piece in advise(made) if piece.title.startswith("Split the batch")]
    answer[name] = {"peak": peak(made).bytes, "advice": [[p.title, p.change, p.saving.at_least] for p in found]}
json.dump(answer, sys.stdout)
"""


@cache
def answer() -> Any:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (REPOSITORY, TESTS)))
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_constraint_is_advised_where_each_device_has_all_examples() -> None:
    ((title, change, saved),) = answer()["whole"]["advice"]
    assert title.startswith("Split the batch of 8,192 at ")
    assert "with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(" in change
    real = answer()["whole"]["peak"] - answer()["split"]["peak"]
    assert 0.8 * real <= saved <= 1.25 * real


def test_a_batch_that_is_split_gets_no_advice() -> None:
    assert answer()["split"]["advice"] == []
