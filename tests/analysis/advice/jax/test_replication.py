"""Advice on replicated arguments, from a process with eight CPU devices. JAX counts devices when it starts."""

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
from support.advised import LAYERS, WIDTH, Shaped, adam, compiled, sgd, unrolled
from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.usage.live_bytes import peak

mesh = Mesh(np.array(jax.devices()), ("d",))

def sharded(spec, *shape):
    return Shaped(shape, np.float32, sharding=NamedSharding(mesh, spec))

def weights(spec):
    one = {"up": sharded(spec, WIDTH, 2 * WIDTH), "down": sharded(spec, 2 * WIDTH, WIDTH)}
    return {f"layer_{i}": one for i in range(LAYERS)}

def step(params, momentum):
    out = jax.tree.map(lambda leaf: leaf.sharding, (weights(params), weights(momentum)))
    arguments = weights(params), weights(momentum), sharded(P("d"), 2048, WIDTH)
    return compiled(sgd(unrolled()), *arguments, donate_argnums=(0, 1), out_shardings=out)

cases = {"none": (P(), P()), "momentum": (P(), P("d")), "params": (P("d"), P()), "both": (P("d"), P("d"))}
answer = {}
for name, specs in cases.items():
    made = step(*specs)
    found = [piece for piece in advise(made) if piece.kind == "replication"]
    answer[name] = {"peak": peak(made).bytes, "devices": made.program.devices,
                    "advice": {p.title: [p.bytes, p.saving.at_least, p.saving.at_most] for p in found}}

def apart(params, mu, nu, x):
    params, state = adam(unrolled())(params, {"mu": mu, "nu": nu}, x)
    return params, state["mu"], state["nu"]

made = compiled(apart, *(weights(P()) for _ in range(3)), sharded(P("d"), 2048, WIDTH), donate_argnums=(0, 1, 2))
answer["apart"] = {piece.title: piece.bytes for piece in advise(made) if piece.kind == "replication"}

def together(state, x):
    params, (mu, nu) = state
    return apart(params, mu, nu, x)

state = weights(P()), (weights(P()), weights(P()))
made = compiled(together, state, sharded(P("d"), 2048, WIDTH), donate_argnums=0)
answer["together"] = {piece.title: piece.bytes for piece in advise(made) if piece.kind == "replication"}
json.dump(answer, sys.stdout)
"""
MIB = 2**20


@cache
def answers() -> dict[str, Any]:
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(map(str, (TESTS, REPOSITORY))),
    }
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    # Since JAX 0.12, programs name the axes of their mesh.
    found: dict[str, Any] = json.loads(done.stdout.replace("'d', ", ""))
    return found


def test_the_state_that_every_device_holds_all_of() -> None:
    before, after = answers()["none"], answers()["both"]
    (size, at_least, at_most) = before["advice"]["Shard params, momentum over 8 devices"]
    assert before["devices"] == 8
    assert size == 48 * MIB
    assert at_least <= before["peak"] - after["peak"] <= at_most


def test_state_of_which_a_part_is_sharded_already() -> None:
    before, after = answers()["params"], answers()["both"]
    (size, at_least, at_most) = before["advice"]["Shard momentum over 8 devices"]
    assert size == 24 * MIB
    assert at_least <= before["peak"] - after["peak"] <= at_most


def test_what_is_sharded_is_left_alone() -> None:
    assert not answers()["both"]["advice"]


def test_moments_and_parameters_are_one_change_however_they_are_passed() -> None:
    assert answers()["apart"] == {"Shard params, mu, nu over 8 devices": 72 * MIB}
    assert answers()["together"] == {"Shard state over 8 devices": 72 * MIB}
