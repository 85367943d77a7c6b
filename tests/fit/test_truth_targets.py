"""Targets against the compilers: each has the devices that it says, and the capacity that compiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tb_memplugin.fit.compiling.child import ENVIRONMENT
from tb_memplugin.model.accelerators import GPUS, TPUS
from tb_memplugin.targets import parse_target, slices

jax = pytest.importorskip("jax", minversion="0.12")
needs_libtpu = pytest.mark.skipif(not find_spec("libtpu"), reason="needs libtpu")
needs_cuda = pytest.mark.skipif(not find_spec("jax_cuda12_plugin"), reason="needs jax[cuda12]")

COUNT = """
import json, sys
from tb_memplugin.fit.compiling.child import devices_of
from tb_memplugin.targets import parse_target
print(json.dumps([len(devices_of(parse_target(text))) for text in sys.argv[1:]]))
"""

# A program that copies its arguments: it reserves twice their size, and has as little code as there can be.
BOTH_SIDES = """
import json, sys
import jax, jax.numpy as jnp
from tb_memplugin.fit.compiling.child import devices_of
from tb_memplugin.targets import parse_target

target = parse_target(sys.argv[1])
place = jax.sharding.SingleDeviceSharding(devices_of(target)[0])

def compiles(reserved):
    size, number = reserved // 8, 64
    sizes = [size // number] * (number - 1) + [size - size // number * (number - 1)]
    arrays = [jax.ShapeDtypeStruct((n,), jnp.float32, sharding=place) for n in sizes]
    try:
        jax.jit(lambda arrays: [x + 1 for x in arrays]).lower(arrays).compile()
    except jax.errors.JaxRuntimeError as error:
        assert "RESOURCE_EXHAUSTED" in str(error), error
        return False
    return True

print(json.dumps([compiles(target.capacity - 2048), compiles(target.capacity + 4096)]))
"""


def child(code: str, *words: str) -> Any:
    path = str(Path(__file__).parents[2])
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}
    printed = subprocess.run([sys.executable, "-c", code, *words], env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(printed.stdout)


@needs_libtpu
def test_each_tpu_slice_has_its_number_of_devices() -> None:
    texts = [str(target) for chip in TPUS for target in slices(chip)]
    assert child(COUNT, *texts) == [target.devices for text in texts if (target := parse_target(text))]


@needs_cuda
def test_each_gpu_has_its_number_of_devices_on_one_host_and_on_several() -> None:
    texts = [f"{chip}:{count}" for chip in GPUS for count in (1, 3, 8, 16)]
    assert child(COUNT, *texts) == [1, 3, 8, 16] * len(GPUS)


@needs_libtpu
@pytest.mark.parametrize("chip", TPUS)
def test_a_tpu_compiles_programs_up_to_its_capacity_and_refuses_larger_ones(chip: str) -> None:
    assert child(BOTH_SIDES, str(slices(chip)[0])) == [True, False]
