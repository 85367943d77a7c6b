"""The random order of tests, and which of them share a process."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any, cast

import pytest
from support.order import group, shuffle


class Item:
    def __init__(self, path: str, number: int) -> None:
        self.path = Path(path)
        self.name = f"{path}::{number}"


def shuffled(seed: int) -> list[Item]:
    items: list[Any] = [
        Item(f"tests/{folder}/{i}.py", j) for folder in ("a", "browser") for i in range(5) for j in range(9)
    ]
    shuffle(cast(list[pytest.Item], items), seed)
    return items


def test_a_seed_gives_an_order_in_which_each_file_is_in_one_piece() -> None:
    first = shuffled(1)
    assert [item.name for item in first] == [item.name for item in shuffled(1)] != [item.name for item in shuffled(2)]
    assert len([path for path, _ in groupby(item.path for item in first)]) == 10
    assert ["browser" in item.path.parts for item in first] == [True] * 45 + [False] * 45


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
