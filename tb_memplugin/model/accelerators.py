"""The table of accelerators: what each TPU and GPU is called, what memory it has, and in which sizes it is offered.

Compilers, profiles, users and the page name a chip in different ways. Each chip is one row here, with all of its names;
docs/accelerators.md says how to add one.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from tb_memplugin.model.recording import Recording

GIB, MIB = 2**30, 2**20
HBM_SPACE, VMEM_SPACE = 0, 1  # XLA's memory spaces of a TPU program
Shape = tuple[int, ...]

PARTS_OF_HOST = ((1, 1, 1), (1, 1, 2))
SMALL_CUBES = ((1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
CUBE_EDGE = 4  # larger slices are made of cubes with 4 chips along each edge
SQUARES = ((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
LARGER_SQUARES = ((16, 32), (32, 32))
RECTANGLES = ((1, 1), (1, 2), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
# Slices to try from the smallest up: each has twice the chips of the one before.
CUBES = (
    *((1, 1, 1), (2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 4), (4, 4, 8), (4, 8, 8), (8, 8, 8)),
    *((8, 8, 16), (8, 16, 16), (16, 16, 16)),
)


class Chip(NamedTuple):
    """A chip with its memory limits in bytes, per JAX device."""

    name: str
    hbm: int  # what a compiler or an allocator may use; less than the chip has
    vmem: int | None = None  # per core


class Speed(NamedTuple):
    """The rates, per second, that programs reach on a device."""

    peak_flops: float  # published, of matrix products with 16-bit operands
    flops: float
    memory_bytes: float  # to and from the device's memory
    link_bytes: float  # to the other devices, in a ring
    host_bytes: float  # to or from the host's memory
    launch_seconds: float  # for an instruction of any size


# - GPU: with these shares of the published rates, eight steps on an H100 took 0.93 to 1.14 times their estimates
#   (tests/data/h100/programs.json).
# - TPU: on a v6e, fusions and a broadcast reached 0.74 to 0.89 of the memory's rate, an all-reduce 0.5 of the ring's,
#   and copies from and to the host 42 GB/s, which stands for all chips. Of five programs for v5e and v6e, libtpu 0.0.52
#   estimates 1.01 to 1.11 times the time that follows, and 1.37 times for a decode step.
GPU_SHARES = Speed(1, flops=0.65, memory_bytes=0.85, link_bytes=0.7, host_bytes=50e9, launch_seconds=2e-6)
TPU_SHARES = Speed(1, flops=0.7, memory_bytes=0.7, link_bytes=0.5, host_bytes=42e9, launch_seconds=1e-6)


class Tpu(NamedTuple):
    """A TPU: its names, the memory of a device, and the sizes of its slices; `flat` has those of two-dimensional ones.

    A device is a core on v2, v3 and 7x, else a chip.
    """

    chip: Chip
    capacity: int  # bytes that the smallest program may reserve
    version: tuple[str, str]  # in target_arguments.txt: version and variant
    kinds: tuple[str, ...]  # names of devices in JAX (`device_kind`), in topology.pb and in profiles, in lower case
    aliases: tuple[str, ...] = ()  # further names that people type
    devices_per_chip: int = 1
    flat: tuple[Shape, ...] = ()
    max_chips: int = 0
    options: tuple[tuple[str, str], ...] = ()  # of libtpu's topology
    # Published rates of a chip: 1e12 FLOPs of bf16 and 1e9 bytes of HBM per second, and 1e9 bytes per second of a ring.
    rates: tuple[float, float, float] = (0, 0, 0)

    @property
    def speed(self) -> Speed:
        """Return what programs reach on a device."""
        flops, memory, links = (rate / self.devices_per_chip for rate in self.rates)
        return _reached(1e12 * flops, 1e9 * memory, 1e9 * links, TPU_SHARES)

    @property
    def bytes(self) -> int:
        """Return the memory of a device."""
        return self.chip.hbm

    def exists(self, shape: Shape) -> bool:
        """Return whether the size is offered, or is a part of a host. libtpu would compile for others as well."""
        edges = tuple(sorted(shape))
        if self.flat:
            return edges in self.flat
        cubes = len(edges) == 3 and all(edge % CUBE_EDGE == 0 and edge > 0 for edge in edges)
        return edges in (*PARTS_OF_HOST, *SMALL_CUBES) or (cubes and prod(edges) <= self.max_chips)

    @property
    def slices(self) -> tuple[Shape, ...]:
        """Return sizes to try, smallest first."""
        shapes = self.flat or CUBES
        return tuple(shape for shape in shapes if shape != (1, 2) and (self.flat or prod(shape) <= self.max_chips))


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
    teraflops: float  # 1e12 dense FLOPs of bf16 per second, by NVIDIA's data sheet
    nvlink: float  # 1e9 bytes per second in one direction
    aliases: tuple[str, ...] = ()  # further names that people type

    @property
    def bytes(self) -> int:
        """Return the memory of a device."""
        return self.device_memory_size

    @property
    def speed(self) -> Speed:
        """Return what programs reach on a device."""
        return _reached(1e12 * self.teraflops, self.memory_bandwidth, 1e9 * self.nvlink, GPU_SHARES)


def _reached(flops: float, memory: float, links: float, shares: Speed) -> Speed:
    return shares._replace(
        peak_flops=flops,
        flops=flops * shares.flops,
        memory_bytes=memory * shares.memory_bytes,
        link_bytes=links * shares.link_bytes,
    )


# The limits were measured by compiling for each chip with libtpu 0.0.52, without hardware.
# - `hbm` is the figure of its error "exceeds available HBM", which has two decimals. For v2, v3 and v6e, these are
#   rounded to less than what compiles, so that their figure is the capacity and the 1 MiB of code that the error lists.
# - `vmem` is the figure of "would exceed memory".
# - `capacity` was measured from both sides, to 1 KiB: a program that reserves it compiles, and one that reserves 1 KiB
#   more is refused. It is 1 to 5.5 MiB below `hbm`, since the program's code is in the same memory.
# Both cores of a v4 chip are one device, as on Cloud TPUs; libtpu makes them two without the option.
V2 = Chip("TPU v2", int(7661.5 * MIB), 16 * MIB)
V3 = Chip("TPU v3", int(15853.5 * MIB), 16 * MIB)
V4 = Chip("TPU v4", int(15.25 * GIB), 16 * MIB)
V4_MEGACORE = Chip("TPU v4 (megacore)", int(30.75 * GIB), 16 * MIB)
V5E = Chip("TPU v5e", int(15.75 * GIB), 128 * MIB)
V5P = Chip("TPU v5p", int(95.73 * GIB), 64 * MIB)
V6E = Chip("TPU v6e", int(31991.5 * MIB), 128 * MIB)
TPU7X = Chip("TPU7x", int(94.74 * GIB), 64 * MIB)
MEGACORE = "megacore"
TPUS = {
    "v2": Tpu(
        V2, int(7660.5 * MIB), ("JELLYFISH", ""), ("tpu v2",),
        devices_per_chip=2, flat=SQUARES, rates=(45, 700, 124),
    ),
    "v3": Tpu(
        V3, int(15852.5 * MIB), ("DRAGONFISH", ""), ("tpu v3",),
        devices_per_chip=2, flat=(*SQUARES, *LARGER_SQUARES), rates=(123, 900, 200),
    ),
    "v4": Tpu(
        V4_MEGACORE, int(31482.5 * MIB), ("PUFFERFISH", ""), ("tpu v4",),
        max_chips=4096, options=(("chip_config_name", MEGACORE),), rates=(275, 1228, 90),
    ),
    "v5e": Tpu(
        V5E, int(16124.5 * MIB), ("VIPERFISH", "lite"), ("tpu v5 lite", "tpu v5e"),
        aliases=("v5litepod",),  # in the names of Google Cloud's accelerator types
        flat=RECTANGLES, rates=(197, 819, 90),
    ),
    "v5p": Tpu(
        V5P, int(98022.5 * MIB), ("VIPERFISH", ""), ("tpu v5", "tpu v5p"),
        max_chips=8960, rates=(459, 2765, 180),
    ),
    "v6e": Tpu(
        V6E, int(31990.5 * MIB), ("GHOSTLITE", ""), ("tpu v6 lite", "tpu v6e"),
        flat=RECTANGLES, rates=(918, 1640, 180),
    ),
    "tpu7x": Tpu(
        TPU7X, int(97010.5 * MIB), ("6acc60406", ""), ("tpu7x", "tpu v7x"),
        aliases=("7x", "v7x"), devices_per_chip=2, max_chips=9216, rates=(2307, 7380, 180),
    ),
}  # fmt: skip
GPUS = {
    "a100": Gpu(
        "NVIDIA A100-SXM4-40GB", (8, 0), 108, 64, 167936, 166912, 41943040, 1555200000000, 1.41, 42331013120,
        teraflops=312, nvlink=300, aliases=("a100-40",),
    ),
    "a100-80": Gpu(
        "NVIDIA A100-SXM4-80GB", (8, 0), 108, 64, 167936, 166912, 41943040, 2039040000000, 1.41, 85100068864,
        teraflops=312, nvlink=300,
    ),
    "h100": Gpu(
        "NVIDIA H100 80GB HBM3", (9, 0), 132, 128, 233472, 232448, 52428800, 3352320000000, 1.98, 84942979072,
        teraflops=989, nvlink=450,
    ),
    "h200": Gpu(
        "NVIDIA H200 141GB HBM3e", (9, 0), 132, 128, 233472, 232448, 52428800, 4800000000000, 1.98, 151397597184,
        teraflops=989, nvlink=450,
    ),
    "b200": Gpu(
        "NVIDIA B200", (10, 0), 148, 128, 233472, 232448, 132644864, 7672320000000, 1.965, 191514411008,
        teraflops=2250, nvlink=900,
    ),
    "b300": Gpu(
        "NVIDIA B300", (10, 3), 158, 128, 233472, 232448, 135528448, 7936000000000, 1.965, 297021865984,
        teraflops=2250, nvlink=900,
    ),
}  # fmt: skip
ACCELERATORS: dict[str, Tpu | Gpu] = {**TPUS, **GPUS}  # by the name that every surface shows
OTHER_NAMES = {alias: name for name, chip in ACCELERATORS.items() for alias in chip.aliases}

VERSION = re.compile(r"\bversion:\s*TPU_VERSION_(\w+)")
VARIANT = re.compile(r'\bvariant:\s*"([^"\n]*)"')
CONFIGURATION = re.compile(r'\bchip_config_name:\s*"([^"\n]*)"')
TOPOLOGY = re.compile(rb"TFRT (TPU[ \w]{1,60})\n")  # of the platform version
MEMORY_SIZE = re.compile(r"\bdevice_memory_size:\s*(\d{1,18})")
DESCRIPTION = re.compile(r'\bdevice_description_str:\s*"([^"\n]*)"')


def accelerator_name(text: str) -> str:
    """Return the name of the accelerator that people call so, such as `tpu7x` for `7X`; other names in lower case."""
    name = text.strip().lower()
    return OTHER_NAMES.get(name, name)


def chip_of_name(name: str) -> Chip | None:
    """Return the TPU with a device's name, such as "TPU v5 lite"; None if unknown."""
    kind = " ".join(name.lower().split())
    return next((tpu.chip for tpu in TPUS.values() if kind in tpu.kinds), None)


def chip_of_target_arguments(text: str) -> Chip | None:
    """Return the TPU of a dump's target_arguments.txt; None if unknown."""
    version, variant, configuration = (pattern.search(text) for pattern in (VERSION, VARIANT, CONFIGURATION))
    named = (version[1] if version else "", variant[1] if variant else "")
    chip = next((tpu.chip for tpu in TPUS.values() if tpu.version == named), None)
    return _configured(chip, configuration is not None and configuration[1] == MEGACORE)


def chip_of_topology(data: bytes) -> Chip | None:
    """Return the TPU of a dump's topology.pb; None if unknown."""
    name = TOPOLOGY.search(data)
    return _configured(chip_of_name(name[1].decode()) if name else None, MEGACORE.encode() in data)


def chip_of_gpu_target_config(text: str) -> Chip | None:
    """Return the GPU of a dump's gpu_target_config.pbtxt; None without a memory size."""
    size, name = MEMORY_SIZE.search(text), DESCRIPTION.search(text)
    if size is None or not int(size[1]):
        return None
    return Chip(name[1] if name else "the GPU", int(size[1]))


# FLOPs per cycle and core of products with 16-bit operands, dense, by NVIDIA's compute capability: the published rates
# of V100, T4, A100, A40, L40S, H100 and B200, divided by their cores and clocks. Those for players have half at most.
FLOPS_PER_CYCLE = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 6): 1024, (8, 9): 1024, (9, 0): 4096, (10, 0): 8192}
LINKS_OF_MEMORY = 1 / 8  # the rate of NVLink to that of the memory, about, in the table
SAME_BANDWIDTH = 0.1  # drivers state rates of memory that differ by less from published ones


def speed_of(name: str) -> Speed | None:
    """Return what programs reach on the TPU or GPU with this full name, as `Chip` and `Gpu` have it."""
    tpus = {tpu.chip.name: tpu.speed for tpu in TPUS.values()}
    return tpus.get(name) or next((gpu.speed for gpu in GPUS.values() if gpu.name == name), None)


def speed_of_gpu(capability: tuple[int, int], cores: int, clock_hz: float, memory_bandwidth: float) -> Speed | None:
    """Return what programs reach on an NVIDIA GPU with these figures of its driver; None where they say too little."""
    for gpu in GPUS.values():
        is_near = abs(memory_bandwidth / gpu.memory_bandwidth - 1) < SAME_BANDWIDTH
        if (gpu.compute_capability, gpu.core_count) == (capability, cores) and is_near:
            return gpu.speed
    flops = FLOPS_PER_CYCLE.get(capability, 0) * cores * clock_hz if memory_bandwidth > 0 else 0
    return _reached(flops, memory_bandwidth, LINKS_OF_MEMORY * memory_bandwidth, GPU_SHARES) if flops else None


def with_speed(recordings: Sequence[Recording], speed: Speed | None) -> list[Recording]:
    """Return a program's recordings with the speed of its device."""
    return [
        replace(recording, program=replace(recording.program, speed=speed)) if recording.program else recording
        for recording in recordings
    ]


def with_chip(recordings: Sequence[Recording], chip: Chip, source: str) -> list[Recording]:
    """Return a program's recordings with the chip's memory limits and speed. `source`: the file that names the chip."""
    limits = {HBM_SPACE: chip.hbm, VMEM_SPACE: chip.vmem}
    words = f"the limit of {chip.name}, from {source}"
    return [
        replace(recording, capacity=limit, capacity_source=words)
        if recording.program is not None and (limit := limits.get(recording.program.memory_space)) is not None
        else recording
        for recording in with_speed(recordings, speed_of(chip.name))
    ]


def _configured(chip: Chip | None, is_megacore: bool) -> Chip | None:
    """Return the chip that a program was compiled for: without megacore, a core of a v4 has half of the memory."""
    return V4 if chip is V4_MEGACORE and not is_megacore else chip
