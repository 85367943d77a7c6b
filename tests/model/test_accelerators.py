"""Memory limits of chips, by the names in dumps and profiles."""

from __future__ import annotations

import pytest

from tb_memplugin.model.accelerators import (
    GIB,
    MIB,
    chip_of_gpu_target_config,
    chip_of_name,
    chip_of_target_arguments,
    chip_of_topology,
)

# As libtpu 0.0.52 writes them, without what follows.
TARGET_ARGUMENTS = 'replica_count: 1\ntpu_topology_args {{\n  version: TPU_VERSION_{}\n{}  chip_config_name: "{}"\n}}\n'
TOPOLOGY = b"\x12\x03tpu\x1aHTFRT %s\nBuilt on Nov 5 2026 01:07:28 (1793869648) cl/1014260217Jn\n7type\x07%s*\x06"


@pytest.mark.parametrize(
    ("version", "variant", "configuration", "name", "limit", "vmem"),
    [
        ("JELLYFISH", "", "default", b"TPU v2", 7.48, 16),
        ("DRAGONFISH", "", "default", b"TPU v3", 15.48, 16),
        ("PUFFERFISH", "", "default", b"TPU v4", 15.25, 16),
        ("PUFFERFISH", "", "megacore", b"TPU v4", 30.75, 16),
        ("VIPERFISH", "lite", "default", b"TPU v5 lite", 15.75, 128),
        ("VIPERFISH", "", "default", b"TPU v5", 95.73, 64),
        ("GHOSTLITE", "", "default", b"TPU v6 lite", 31.24, 128),
        ("6acc60406", "", "default", b"TPU7x", 94.74, 64),
    ],
)
def test_files_of_a_dump_name_the_chip(
    version: str, variant: str, configuration: str, name: bytes, limit: float, vmem: int
) -> None:
    text = TARGET_ARGUMENTS.format(version, f'  variant: "{variant}"\n' if variant else "", configuration)
    chip = chip_of_target_arguments(text)
    assert chip is not None
    assert chip == chip_of_topology(TOPOLOGY % (name, configuration.encode()))
    assert (round(chip.hbm / GIB, 2), chip.vmem) == (limit, vmem * MIB)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("TPU v6 Lite", 31.24),
        ("TPU v5 lite", 15.75),
        ("TPU v5p", 95.73),
        ("TPU v4", 30.75),
        ("TPU  7x", None),
        ("", None),
    ],
)
def test_profiles_and_jax_name_the_chip(name: str, limit: float | None) -> None:
    chip = chip_of_name(name)
    assert (round(chip.hbm / GIB, 2) if chip else None) == limit


def test_an_unknown_chip_has_no_limit() -> None:
    assert chip_of_target_arguments(TARGET_ARGUMENTS.format("NEWFISH", "", "default")) is None
    assert chip_of_target_arguments("") is None
    assert chip_of_topology(TOPOLOGY % (b"TPU v99", b"default")) is None


def test_a_gpu_has_the_size_in_its_target_configuration() -> None:
    text = 'gpu_device_info {\n  device_memory_size: 84978434048\n}\ndevice_description_str: "NVIDIA H100 80GB HBM3"\n'
    chip = chip_of_gpu_target_config(text)
    assert chip == ("NVIDIA H100 80GB HBM3", 84978434048, None)
    assert chip_of_gpu_target_config("gpu_device_info { }") is None
