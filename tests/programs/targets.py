"""Accelerators that programs of the corpus are compiled for: four chips of a TPU, four GPUs of a host."""

from __future__ import annotations

from typing import Any

from tb_memplugin.fit.compiling.child import devices_of
from tb_memplugin.targets import parse_target

TPU_SLICES = {
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "tpu7x": "tpu7x:2x2x1",
}  # a chip of tpu7x has two devices
GPU_HOSTS = {"h100": "h100:4"}
TARGETS = {**TPU_SLICES, **GPU_HOSTS}


def target_devices(target: str) -> list[Any]:
    """Return the devices of a target, as descriptions without hardware. Needs ENVIRONMENT set before JAX loads."""
    found = parse_target(TARGETS[target])
    assert found is not None
    return devices_of(found)
