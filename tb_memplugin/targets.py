"""Accelerators to compile for: `v5e:4x4` is a slice of 16 chips, `h100:8` a host with 8 GPUs, `cpu:8` 8 CPU devices."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from math import prod

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import ACCELERATORS, GPUS, TPUS, accelerator_name

DEVICES_PER_HOST = 8
# NVIDIA's names of the versions that a compiler assumes; they choose among kernels.
CUDA, CUDNN = "major: 12 minor: 9 patch: 0", "major: 9 minor: 10"
MEMORY_FRACTIONS = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")  # the first one is the newer name
DEFAULT_FRACTION = 0.75  # of the device's memory is what JAX allocates from
# The driver's and CUDA's own memory, outside of PyTorch's allocator: measured on an H100 with CUDA 13.
CONTEXT_BYTES = 751 << 20
# Figures that are the same for all GPUs.
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
# Fields of Gpu that XLA's GpuDeviceInfoProto lacks.
NO_DEVICE_INFO = ("name", "compute_capability", "teraflops", "nvlink", "aliases")


def gpu_target_config(chip: str) -> str:
    """Return the text form of XLA's GpuTargetConfig."""
    gpu = GPUS[chip]
    major, minor = gpu.compute_capability
    own = {key: value for key, value in gpu._asdict().items() if key not in NO_DEVICE_INFO}
    info = "\n".join(f"  {key}: {value}" for key, value in (COMMON | own).items())
    return (
        f"gpu_device_info {{\n{info}\n  cuda_compute_capability {{ major: {major} minor: {minor} }}\n}}\n"
        f'platform_name: "CUDA"\ndnn_version_info {{ {CUDNN} }}\nruntime_version {{ {CUDA} }}\n'
        f'device_description_str: "{gpu.name}"\n'
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


TEXT = re.compile(r"(?P<chip>[a-z0-9-]{2,10})(?::(?P<shape>\d{1,5}(?:x\d{1,4}){0,2}))?")
DEVICE_COUNTS = (1, 2, 4, 8)  # of GPUs and CPU devices, to try
MAX_CPU_DEVICES = 1024


@dataclass(frozen=True)
class Target:
    """An accelerator with a number of devices; the shape of a TPU slice is that of its topology, in chips."""

    chip: str
    shape: tuple[int, ...]
    of_torch: bool = False  # PyTorch's allocator takes what CUDA leaves, JAX's a fraction of the memory

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
    def devices(self) -> int:
        """The number of JAX devices: a chip of some TPUs is two."""
        return self.chips * (TPUS[self.chip].devices_per_chip if self.chip in TPUS else 1)

    @property
    def capacity(self) -> int | None:
        """The bytes that a device's programs may reserve; None where the host's memory is the limit."""
        return usable_by_torch(self.chip) if self.of_torch else capacity_of(self.chip)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Memory and choices that the figures for this target leave out."""
        if self.platform == "cpu":
            return ("XLA schedules and fuses programs differently for CPU, TPU and GPU: figures do not carry over",)
        if self.chip not in GPUS:
            return ()
        memory = GPUS[self.chip].device_memory_size / 2**30
        return (
            f"The limit is {memory_fraction():.0%} of the GPU's {memory:.2f} GiB: XLA_PYTHON_CLIENT_MEM_FRACTION",
            "Compiled without autotuning, with cuBLAS for matrix products: on a GPU, some take other kernels",
            "The CUDA context, and memory of cuBLAS, cuDNN and NCCL outside of the program, are not included",
        )


def parse_target(text: str) -> Target | None:
    """Parse a target with its size; None for a chip without a size. InputError for anything else."""
    found = TEXT.fullmatch(text.strip().lower())
    chip = accelerator_name(found["chip"]) if found is not None else ""
    if found is None or chip not in (*ACCELERATORS, "cpu"):
        known = ", ".join((*ACCELERATORS, "cpu"))
        raise InputError("No such target", text, f"use one of {known}, with a size as in v5e:4x4, h100:8 or cpu:8")
    if found["shape"] is None:
        return None
    target = Target(chip, tuple(map(int, found["shape"].split("x"))))
    if not _exists(target):
        raise InputError("No such size", text, f"{chip} has {_sizes(chip)}")
    return target


def targets_to_try(text: str) -> list[Target]:
    """Return the target that a user names with its size, or for a chip without a size the sizes to try."""
    target = parse_target(text)
    return slices(text) if target is None else [target]


def slices(chip: str) -> list[Target]:
    """Return the sizes of a chip, or numbers of devices, to try: smallest first."""
    chip = accelerator_name(chip)
    shapes = TPUS[chip].slices if chip in TPUS else tuple((count,) for count in DEVICE_COUNTS)
    return [Target(chip, shape) for shape in shapes]


def chip_of(text: str) -> str:
    """Return the chip of a target, with or without a size. InputError where there is none."""
    target = parse_target(text)
    return target.chip if target is not None else accelerator_name(text)


def capacity_of(chip: str) -> int | None:
    """Return the bytes that a device's programs may reserve; None where the host's memory is the limit."""
    if chip in TPUS:
        return TPUS[chip].capacity
    # JAX allocates from a part of a GPU's memory.
    return int(GPUS[chip].device_memory_size * memory_fraction()) if chip in GPUS else None


def usable_by_torch(chip: str) -> int:
    """Return the bytes of a GPU that PyTorch's allocator may reserve."""
    return GPUS[chip].device_memory_size - CONTEXT_BYTES


def _exists(target: Target) -> bool:
    if target.chip in TPUS:
        return TPUS[target.chip].exists(target.shape)
    if len(target.shape) != 1 or not target.chips:
        return False
    if target.chip in GPUS:
        return target.chips <= DEVICES_PER_HOST or target.chips % DEVICES_PER_HOST == 0
    return target.chips <= MAX_CPU_DEVICES


def _sizes(chip: str) -> str:
    """Return the sizes that exist, in words."""
    some = ", ".join(str(target).partition(":")[2] for target in slices(chip))
    if chip in GPUS:
        return f"1 to {DEVICES_PER_HOST} devices, or several hosts with {DEVICES_PER_HOST} each, such as {chip}:16"
    if chip in TPUS and TPUS[chip].flat:
        return some
    more = "any number to" if chip == "cpu" else "others of 4x4x4 cubes, to"
    return f"{some}, and {more} {TPUS[chip].max_chips if chip in TPUS else MAX_CPU_DEVICES}"
