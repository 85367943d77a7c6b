"""GPUs to compile for, as XLA describes them."""

from __future__ import annotations

import os
from typing import NamedTuple

DEVICES_PER_HOST = 8
# NVIDIA's names of the versions that a compiler assumes; they choose among kernels.
CUDA, CUDNN = "major: 12 minor: 9 patch: 0", "major: 9 minor: 10"
MEMORY_FRACTIONS = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")  # the first one is the newer name
DEFAULT_FRACTION = 0.75  # of the device's memory is what JAX allocates from


class Gpu(NamedTuple):
    """A GPU in the terms of XLA's GpuDeviceInfoProto, with figures that XLA publishes of each."""

    name: str
    compute_capability: tuple[int, int]
    core_count: int
    fpus_per_core: int
    shared_memory_per_core: int
    shared_memory_per_block_optin: int
    l2_cache_size: int
    memory_bandwidth: int  # bytes per second
    clock_rate_ghz: float
    device_memory_size: int  # as the driver reports it


GPUS = {
    "a100": Gpu(
        "NVIDIA A100-SXM4-40GB", (8, 0), 108, 64, 167936, 166912, 41943040, 1555200000000, 1.41, 42331013120
    ),
    "a100-80": Gpu(
        "NVIDIA A100-SXM4-80GB", (8, 0), 108, 64, 167936, 166912, 41943040, 2039040000000, 1.41, 85100068864
    ),
    "h100": Gpu("NVIDIA H100 80GB HBM3", (9, 0), 132, 128, 233472, 232448, 52428800, 3352320000000, 1.98, 84942979072),
    "h200": Gpu(
        "NVIDIA H200 141GB HBM3e", (9, 0), 132, 128, 233472, 232448, 52428800, 4800000000000, 1.98, 151397597184
    ),
    "b200": Gpu("NVIDIA B200", (10, 0), 148, 128, 233472, 232448, 132644864, 7672320000000, 1.965, 191514411008),
    "b300": Gpu("NVIDIA B300", (10, 3), 158, 128, 233472, 232448, 135528448, 7936000000000, 1.965, 297021865984),
}  # fmt: skip
# Figures that are the same for all of them.
COMMON = {
    "threads_per_block_limit": 1024,
    "threads_per_warp": 32,
    "threads_per_core_limit": 2048,
    "shared_memory_per_block": 49152,
    "registers_per_core_limit": 65536,
    "registers_per_block_limit": 65536,
    "block_dim_limit_x": 2147483647,
    "block_dim_limit_y": 65535,
    "block_dim_limit_z": 65535,
}


def gpu_target_config(chip: str) -> str:
    """Return the text form of XLA's GpuTargetConfig."""
    found = GPUS[chip]._asdict()
    name, (major, minor) = found.pop("name"), found.pop("compute_capability")
    info = "\n".join(f"  {key}: {value}" for key, value in (COMMON | found).items())
    return (
        f"gpu_device_info {{\n{info}\n  cuda_compute_capability {{ major: {major} minor: {minor} }}\n}}\n"
        f'platform_name: "CUDA"\ndnn_version_info {{ {CUDNN} }}\nruntime_version {{ {CUDA} }}\n'
        f'device_description_str: "{name}"\n'
    )


def gpu_topology(devices: int) -> str:
    """Return XLA's name of a topology: slices, hosts, devices of each host."""
    hosts = max(devices // DEVICES_PER_HOST, 1)
    return f"1x{hosts}x{devices // hosts}"


def memory_fraction() -> float:
    """Return the part of a device's memory that JAX allocates from, as the environment sets it."""
    text = next((os.environ[name] for name in MEMORY_FRACTIONS if os.environ.get(name)), "")
    try:
        return min(max(float(text), 0.0), 1.0) if text else DEFAULT_FRACTION
    except ValueError:
        return DEFAULT_FRACTION


def gpu_capacity(chip: str) -> int:
    """Return the bytes of a device that JAX allocates from."""
    return int(GPUS[chip].device_memory_size * memory_fraction())


def gpu_caveats(chip: str) -> tuple[str, ...]:
    """Return what a figure compiled without a GPU leaves out."""
    memory = GPUS[chip].device_memory_size / 2**30
    return (
        f"The limit is {memory_fraction():.0%} of the GPU's {memory:.2f} GiB: XLA_PYTHON_CLIENT_MEM_FRACTION",
        "Compiled without autotuning: kernels that are chosen on a GPU may need larger workspaces",
        "The CUDA context, and memory of cuBLAS, cuDNN and NCCL outside of the program, are not included",
    )
