"""Accelerators to compile for: `v5e:4x4` is a slice of 16 chips, `h100:8` a host with 8 GPUs, `cpu:8` 8 CPU devices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.model.chips import TPU7X, V4, V5E, V5P, V6E, Chip

TEXT = re.compile(r"(?P<chip>[a-z0-9]{2,8})(?::(?P<shape>\d{1,5}(?:x\d{1,4}){0,2}))?")
TPUS = {"v4": V4, "v5e": V5E, "v5p": V5P, "v6e": V6E, "tpu7x": TPU7X}
# Slices that Google Cloud offers, smallest first.
FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
CUBES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "8x16x16")
SLICES = {"v4": CUBES, "v5e": FLAT, "v5p": CUBES, "v6e": FLAT, "tpu7x": CUBES}
DEVICE_COUNTS = ("1", "2", "4", "8")  # of GPUs and CPU devices

# XLA's description of GPUs, as a GpuTargetConfig; memory sizes are those that the driver reports.
GPUS = {
    "h100": {
        "threads_per_block_limit": 1024, "threads_per_warp": 32, "shared_memory_per_block": 49152,
        "shared_memory_per_core": 233472, "threads_per_core_limit": 2048, "core_count": 132, "fpus_per_core": 128,
        "block_dim_limit_x": 2147483647, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
        "memory_bandwidth": 3352320000000, "l2_cache_size": 52428800, "clock_rate_ghz": 1.98,
        "device_memory_size": 84978434048, "shared_memory_per_block_optin": 232448,
        "registers_per_core_limit": 65536, "registers_per_block_limit": 65536,
    },
}  # fmt: skip
GPU_NAMES = {"h100": ("NVIDIA H100 80GB HBM3", 9, 0)}

# Without these, libtpu looks for hardware, and a second process aborts on its lock.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


@dataclass(frozen=True)
class Target:
    """An accelerator with a number of devices; the shape of a TPU slice is that of its topology."""

    chip: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.chip}:{'x'.join(map(str, self.shape))}"

    @property
    def platform(self) -> str:
        """Return the name of the XLA backend: tpu, cuda or cpu."""
        return "tpu" if self.chip in TPUS else "cuda" if self.chip in GPUS else "cpu"

    @property
    def chips(self) -> int:
        return prod(self.shape)

    @property
    def capacity(self) -> int | None:
        """The bytes that a device's programs may reserve; None where the host's memory is the limit."""
        tpu: Chip | None = TPUS.get(self.chip)
        if tpu is not None:
            return tpu.hbm
        return int(GPUS[self.chip]["device_memory_size"]) if self.chip in GPUS else None


def parse_target(text: str) -> Target | None:
    """Parse a target with its size; None for a chip without a size. InputError for anything else."""
    found = TEXT.fullmatch(text.strip().lower())
    if found is None or found["chip"] not in (*TPUS, *GPUS, "cpu"):
        known = ", ".join((*TPUS, *GPUS, "cpu"))
        raise InputError("No such target", text, f"use one of {known}, with a size as in v5e:4x4, h100:8 or cpu:8")
    if found["shape"] is None:
        return None
    shape = tuple(map(int, found["shape"].split("x")))
    wanted = {"v5e": 2, "v6e": 2}.get(found["chip"], 3) if found["chip"] in TPUS else 1
    if len(shape) != wanted or prod(shape) < 1:
        raise InputError("No such topology", text, f"{found['chip']} has sizes such as {slices(found['chip'])[1]}")
    return Target(found["chip"], shape)


def slices(chip: str) -> list[Target]:
    """Return the sizes that a chip is offered in, smallest first."""
    texts = SLICES.get(chip, DEVICE_COUNTS)
    return [Target(chip, tuple(map(int, text.split("x")))) for text in texts]


def gpu_target_config(chip: str) -> str:
    """Return the text form of XLA's GpuTargetConfig."""
    name, major, minor = GPU_NAMES[chip]
    info = "\n".join(f"  {key}: {value}" for key, value in GPUS[chip].items())
    return (
        f"gpu_device_info {{\n{info}\n  cuda_compute_capability {{ major: {major} minor: {minor} }}\n}}\n"
        'platform_name: "CUDA"\ndnn_version_info { major: 9 minor: 10 }\n'
        "runtime_version { major: 12 minor: 9 patch: 0 }\n"
        f'device_description_str: "{name}"\n'
    )


def devices_of(target: Target) -> list[Any]:
    """Return the devices of a target, as descriptions without hardware, in a process that has ENVIRONMENT set."""
    import jax
    from jax.experimental import topologies

    if target.platform == "cpu":
        jax.config.update("jax_num_cpu_devices", target.chips)
        return list(jax.devices("cpu"))
    if target.platform == "tpu":
        return list(topologies.get_topology_desc(platform="tpu", topology_name=str(target)).devices)
    from jax._src import xla_bridge

    xla_bridge.backends()  # loads the plugin
    shape = f"1x1x{target.chips}"
    found = topologies.get_topology_desc(
        platform="cuda", topology_name=shape, topology=shape, target_config=gpu_target_config(target.chip)
    )
    return list(found.devices)
