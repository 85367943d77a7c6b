"""Names with numbers: of programs without those that a compiler or a profiler added, and in natural order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.growth import grows_linearly

from tb_memplugin.analysis.compare.stable_paths import program_name
from tb_memplugin.numbered_names import natural_key, split_name


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("jit_step.2(34)", "jit_step"),
        ("jit_step (module 7)", "jit_step"),
        ("jit_step(1) (module 7, time 2).5", "jit_step"),
        ("jit_step(1)_again", "jit_step(1)_again"),
        ("dumps/jit_step.3", "jit_step"),
        ("(1)(2)", ""),
    ],
)
def test_a_program_keeps_its_name_without_numbers(title: str, name: str) -> None:
    assert program_name(title) == name


def test_numbers_are_in_their_natural_order() -> None:
    names = ["memory10", "memory9", "a100b10", "a100b2", "1", "memory"]
    assert sorted(names, key=natural_key) == ["1", "a100b2", "a100b10", "memory", "memory9", "memory10"]


@pytest.mark.parametrize("read", [program_name, natural_key, split_name])
def test_time_for_hostile_names_is_linear(read: Callable[[str], object]) -> None:
    assert grows_linearly(lambda size: read("a" + "(1)" * size), 3_000)


def test_a_key_of_a_long_name_is_short() -> None:
    assert len(natural_key("1a" * 100_000)) < 200
