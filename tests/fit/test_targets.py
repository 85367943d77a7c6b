"""Targets as users write them."""

from __future__ import annotations

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.fit.targets import Target, parse_target, slices
from tb_memplugin.model.chips import V5E


@pytest.mark.parametrize(
    ("text", "chips", "platform"),
    [("v5e:4x4", 16, "tpu"), ("V5P:8x8x8", 512, "tpu"), ("h100:8", 8, "cuda"), ("cpu:2", 2, "cpu")],
)
def test_a_target_has_its_chips_and_platform(text: str, chips: int, platform: str) -> None:
    target = parse_target(text)
    assert target is not None
    assert (str(target), target.chips, target.platform) == (text.lower(), chips, platform)


def test_limits_are_those_of_the_chips() -> None:
    assert Target("v5e", (2, 2)).capacity == V5E.hbm
    assert Target("h100", (1,)).capacity == 84978434048
    assert Target("cpu", (1,)).capacity is None


def test_a_chip_without_a_size_is_tried_from_the_smallest_slice_up() -> None:
    assert parse_target("v5e") is None
    sizes = [target.chips for target in slices("v5e")]
    assert sizes == sorted(sizes) and sizes[0] == 1 and len(set(sizes)) == len(sizes)


@pytest.mark.parametrize(
    "text", ["v9", "v5e:", "v5e:4", "v5e:2x2x2", "v5p:4x4", "v5e:0x4", "h100:2x2", "", "v5e:4x4;rm"]
)
def test_others_get_a_message(text: str) -> None:
    with pytest.raises(InputError):
        parse_target(text)
