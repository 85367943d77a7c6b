"""Memory limits of TPU and GPU chips, by the names that compilers and profiles give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tb_memplugin.model.recording import Recording

GIB, MIB = 2**30, 2**20
HBM_SPACE, VMEM_SPACE = 0, 1  # XLA's memory spaces of a TPU program


class Chip(NamedTuple):
    """A chip with its memory limits in bytes, per JAX device."""

    name: str
    hbm: int  # what a compiler or an allocator may use; less than the chip has
    vmem: int | None = None  # per core


# Measured by compiling for each chip with libtpu 0.0.52. HBM is the figure of its error "exceeds available HBM", which
# has two decimals; VMEM is the figure of "would exceed memory". A device is a core on v2, v3, v4 and 7x, else a chip.
V2 = Chip("TPU v2", int(7.48 * GIB), 16 * MIB)
V3 = Chip("TPU v3", int(15.48 * GIB), 16 * MIB)
V4 = Chip("TPU v4", int(15.25 * GIB), 16 * MIB)
V4_MEGACORE = Chip("TPU v4 (megacore)", int(30.75 * GIB), 16 * MIB)  # both cores are one device, as on Cloud TPUs
V5E = Chip("TPU v5e", int(15.75 * GIB), 128 * MIB)
V5P = Chip("TPU v5p", int(95.73 * GIB), 64 * MIB)
V6E = Chip("TPU v6e", int(31.24 * GIB), 128 * MIB)
TPU7X = Chip("TPU7x", int(94.74 * GIB), 64 * MIB)

# Names of devices in JAX (`device_kind`), in topology.pb and in profiles, in lower case.
BY_NAME = {
    "tpu v2": V2,
    "tpu v3": V3,
    "tpu v4": V4_MEGACORE,
    "tpu v5 lite": V5E,
    "tpu v5e": V5E,
    "tpu v5": V5P,
    "tpu v5p": V5P,
    "tpu v6 lite": V6E,
    "tpu v6e": V6E,
    "tpu7x": TPU7X,
    "tpu v7x": TPU7X,
}
# Names that people type.
BY_SHORT_NAME = {"v2": V2, "v3": V3, "v4": V4_MEGACORE, "v5e": V5E, "v5p": V5P, "v6e": V6E, "7x": TPU7X}
# Names in target_arguments.txt: version and variant.
BY_VERSION = {
    ("JELLYFISH", ""): V2,
    ("DRAGONFISH", ""): V3,
    ("PUFFERFISH", ""): V4,
    ("VIPERFISH", "lite"): V5E,
    ("VIPERFISH", ""): V5P,
    ("GHOSTLITE", ""): V6E,
    ("6acc60406", ""): TPU7X,
}
MEGACORE = "megacore"

VERSION = re.compile(r"\bversion:\s*TPU_VERSION_(\w+)")
VARIANT = re.compile(r'\bvariant:\s*"([^"\n]*)"')
CONFIGURATION = re.compile(r'\bchip_config_name:\s*"([^"\n]*)"')
TOPOLOGY = re.compile(rb"TFRT (TPU[ \w]{1,60})\n")  # of the platform version
MEMORY_SIZE = re.compile(r"\bdevice_memory_size:\s*(\d{1,18})")
DESCRIPTION = re.compile(r'\bdevice_description_str:\s*"([^"\n]*)"')


def chip_of_name(name: str) -> Chip | None:
    """Return the TPU with a device's name, such as "TPU v5 lite"; None if unknown."""
    return BY_NAME.get(" ".join(name.lower().split()))


def chip_of_target_arguments(text: str) -> Chip | None:
    """Return the TPU of a dump's target_arguments.txt; None if unknown."""
    version, variant, configuration = (pattern.search(text) for pattern in (VERSION, VARIANT, CONFIGURATION))
    chip = BY_VERSION.get((version[1], variant[1] if variant else "")) if version else None
    return _configured(chip, configuration[1] if configuration else "")


def chip_of_topology(data: bytes) -> Chip | None:
    """Return the TPU of a dump's topology.pb; None if unknown."""
    name = TOPOLOGY.search(data)
    chip = chip_of_name(name[1].decode()) if name else None
    return _configured(V4 if chip is V4_MEGACORE else chip, MEGACORE if MEGACORE.encode() in data else "")


def chip_of_gpu_target_config(text: str) -> Chip | None:
    """Return the GPU of a dump's gpu_target_config.pbtxt; None without a memory size."""
    size, name = MEMORY_SIZE.search(text), DESCRIPTION.search(text)
    if size is None or not int(size[1]):
        return None
    return Chip(name[1] if name else "the GPU", int(size[1]))


def with_chip(recordings: Sequence[Recording], chip: Chip, source: str) -> list[Recording]:
    """Return a program's recordings with the chip's memory limits. `source` is the file that names the chip."""
    limits = {HBM_SPACE: chip.hbm, VMEM_SPACE: chip.vmem}
    words = f"the limit of {chip.name}, from {source}"
    return [
        replace(recording, capacity=limit, capacity_source=words)
        if recording.program is not None and (limit := limits.get(recording.program.memory_space)) is not None
        else recording
        for recording in recordings
    ]


def _configured(chip: Chip | None, configuration: str) -> Chip | None:
    return V4_MEGACORE if chip is V4 and configuration == MEGACORE else chip
