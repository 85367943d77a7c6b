"""Accelerators to compile for: `v5e:4x4` is a slice of 16 chips, `h100:8` a host with 8 GPUs, `cpu:8` 8 CPU devices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from tb_memplugin.errors import InputError
from tb_memplugin.targets.gpus import (
    DEVICES_PER_HOST,
    GPUS,
    gpu_capacity,
    gpu_caveats,
)
from tb_memplugin.targets.tpu_slices import TPUS

TEXT = re.compile(r"(?P<chip>[a-z0-9-]{2,10})(?::(?P<shape>\d{1,5}(?:x\d{1,4}){0,2}))?")
OTHER_NAMES = {"v7x": "tpu7x", "a100-40": "a100"}
DEVICE_COUNTS = (1, 2, 4, 8)  # of GPUs and CPU devices, to try
MAX_CPU_DEVICES = 1024


CHIPS = (*TPUS, *GPUS)


@dataclass(frozen=True)
class Target:
    """An accelerator with a number of devices; the shape of a TPU slice is that of its topology, in chips."""

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
    def devices(self) -> int:
        """The number of JAX devices: a chip of some TPUs is two."""
        return self.chips * (TPUS[self.chip].devices_per_chip if self.chip in TPUS else 1)

    @property
    def capacity(self) -> int | None:
        """The bytes that a device's programs may reserve; None where the host's memory is the limit."""
        return capacity_of(self.chip)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Memory and choices that the figures for this target leave out."""
        if self.platform == "cpu":
            return ("XLA schedules and fuses programs differently for CPU, TPU and GPU: figures do not carry over",)
        return gpu_caveats(self.chip) if self.chip in GPUS else ()


def parse_target(text: str) -> Target | None:
    """Parse a target with its size; None for a chip without a size. InputError for anything else."""
    found = TEXT.fullmatch(text.strip().lower())
    chip = OTHER_NAMES.get(found["chip"], found["chip"]) if found is not None else ""
    if found is None or chip not in (*CHIPS, "cpu"):
        known = ", ".join((*CHIPS, "cpu"))
        raise InputError("No such target", text, f"use one of {known}, with a size as in v5e:4x4, h100:8 or cpu:8")
    if found["shape"] is None:
        return None
    target = Target(chip, tuple(map(int, found["shape"].split("x"))))
    if not _exists(target):
        raise InputError("No such size", text, f"{chip} has {_sizes(chip)}")
    return target


def slices(chip: str) -> list[Target]:
    """Return the sizes of a chip, or numbers of devices, to try: smallest first."""
    chip = OTHER_NAMES.get(chip, chip)
    shapes = TPUS[chip].slices if chip in TPUS else tuple((count,) for count in DEVICE_COUNTS)
    return [Target(chip, shape) for shape in shapes]


def chip_of(text: str) -> str:
    """Return the chip of a target, with or without a size. InputError where there is none."""
    target = parse_target(text)
    return target.chip if target is not None else OTHER_NAMES.get(text.strip().lower(), text.strip().lower())


def capacity_of(chip: str) -> int | None:
    """Return the bytes that a device's programs may reserve; None where the host's memory is the limit."""
    if chip in TPUS:
        return TPUS[chip].capacity
    return gpu_capacity(chip) if chip in GPUS else None


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
