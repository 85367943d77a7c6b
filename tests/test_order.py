"""The random order of tests, and which of them share a process."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any, cast

import pytest
from support.order import arrange, group, number_of_workers


class Item:
    def __init__(self, path: str, number: int) -> None:
        self.path = Path(path)
        self.name = f"{path}::{number}"
        self.number = number

    def get_closest_marker(self, name: str) -> bool:
        return self.path.parts[-2] == name and self.number == 0


def arranged(seed: int) -> list[Item]:
    folders = ("a", "slow", "browser")
    items: list[Any] = [Item(f"tests/{folder}/{i}.py", j) for folder in folders for i in range(5) for j in range(9)]
    arrange(cast(list[pytest.Item], items), seed)
    return items


@pytest.mark.parametrize("seed", [0, 1])
def test_the_longest_files_are_first_and_each_is_in_one_piece(seed: int) -> None:
    items = arranged(seed)
    assert len([path for path, _ in groupby(item.path for item in items)]) == 15
    folders = [folder for folder, _ in groupby(item.path.parts[-2] for item in items)]
    assert folders == ["browser", "slow", "a"]


def test_a_seed_gives_an_order() -> None:
    first, second, unchanged = ([item.name for item in arranged(seed)] for seed in (1, 2, 0))
    assert first == [item.name for item in arranged(1)] != second
    assert unchanged[:9] == [f"tests/browser/0.py::{number}" for number in range(9)]


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 3), (8, 12)])
def test_more_tests_run_at_once_than_there_are_cores(cores: int, expected: int) -> None:
    assert number_of_workers(cores) == expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("tests/browser/test_wheel.py::test_a[xprof-treemap]", "xprof"),
        ("tests/browser/test_wheel.py::test_a[standalone]", "standalone"),
        ("tests/browser/test_fit.py::test_a", "tests/browser/test_fit.py"),
        ("tests/hosts/test_xprof.py::test_a[xprof]", "tests/hosts/test_xprof.py"),
    ],
)
def test_tests_of_one_file_or_of_one_host_in_the_browser_share_a_process(test: str, expected: str) -> None:
    assert group(test) == expected
