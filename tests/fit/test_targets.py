"""Targets as users write them."""

from __future__ import annotations

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import GPUS, MIB, TPU7X, TPUS, V2, V3, V4_MEGACORE, V5E, V5P, V6E, Chip
from tb_memplugin.targets import Target, chip_of, parse_target, slices


@pytest.mark.parametrize(
    ("text", "chips", "devices", "platform"),
    [
        ("v5e:4x4", 16, 16, "tpu"),
        ("v5e:1x1", 1, 1, "tpu"),
        ("V5P:8x8x8", 512, 512, "tpu"),
        ("v4:2x2x1", 4, 4, "tpu"),
        ("v3:2x2", 4, 8, "tpu"),
        ("tpu7x:2x2x1", 4, 8, "tpu"),
        ("h100:8", 8, 8, "cuda"),
        ("a100-80:3", 3, 3, "cuda"),
        ("b200:16", 16, 16, "cuda"),
        ("cpu:2", 2, 2, "cpu"),
    ],
)
def test_a_target_has_its_chips_devices_and_platform(text: str, chips: int, devices: int, platform: str) -> None:
    target = parse_target(text)
    assert target is not None
    assert (str(target), target.chips, target.devices, target.platform) == (text.lower(), chips, devices, platform)


def test_other_names_mean_the_same_chip() -> None:
    assert parse_target("v7x:1x1x1") == parse_target("7x:1x1x1") == parse_target("tpu7x:1x1x1")
    assert chip_of("v5litepod") == "v5e" and chip_of(" A100-40:8") == "a100"


@pytest.mark.parametrize(
    ("chip", "shape", "known"),
    [
        ("v2", (2, 2), V2),
        ("v3", (2, 2), V3),
        ("v4", (2, 2, 1), V4_MEGACORE),
        ("v5e", (2, 2), V5E),
        ("v5p", (2, 2, 1), V5P),
        ("v6e", (2, 2), V6E),
        ("tpu7x", (2, 2, 1), TPU7X),
    ],
)
def test_tpu_programs_may_reserve_all_but_their_code_of_the_compilers_limit(
    chip: str, shape: tuple[int, ...], known: Chip
) -> None:
    capacity = Target(chip, shape).capacity
    assert capacity is not None
    assert known.hbm - 6 * MIB < capacity <= known.hbm - MIB


def test_the_limit_of_a_gpu_is_the_memory_that_jax_allocates_from(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        monkeypatch.delenv(name, raising=False)
    assert Target("h100", (1,)).capacity == int(84942979072 * 0.75)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".9")
    assert Target("h100", (8,)).capacity == int(84942979072 * 0.9)
    assert Target("h100", (8,)).caveats[0].startswith("The limit is 90% of the GPU's 79.11 GiB")
    assert Target("cpu", (1,)).capacity is None


@pytest.mark.parametrize("chip", [*TPUS, *GPUS, "cpu"])
def test_a_chip_without_a_size_is_tried_from_the_smallest_size_up(chip: str) -> None:
    assert parse_target(chip) is None
    targets = slices(chip)
    sizes = [target.chips for target in targets]
    assert sizes == sorted(sizes) and len(set(sizes)) == len(sizes)
    assert [parse_target(str(target)) for target in targets] == targets


@pytest.mark.parametrize(
    "text", ["v9", "v5e:", "v5e:4", "v5e:2x2x2", "v5p:4x4", "v5e:0x4", "h100:2x2", "h100:12", "", "v5e:4x4;rm"]
)
def test_others_get_a_message(text: str) -> None:
    with pytest.raises(InputError):
        parse_target(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("v5e:3x3", "No such size: v5e:3x3: v5e has 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"),
        ("v6e:32x32", "16x16"),
        ("v4:2x2x3", "others of 4x4x4 cubes, to 4096"),
        ("h100:12", "1 to 8 devices, or several hosts with 8 each, such as h100:16"),
        ("cpu:4096", "any number to 1024"),
    ],
)
def test_a_size_that_does_not_exist_is_answered_with_those_that_do(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_target(text)
    assert words in str(caught.value)
