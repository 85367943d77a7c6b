"""The marks that choose which tests `make check` and the second step of `.ci/run` run."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from support.servers import DATA, DEMO

SHARED = DATA / "xplane"


@cache
def read_shared() -> list[Path]:
    return sorted(SHARED.glob("*"))


def start_a_server() -> None:
    import subprocess

    subprocess.run(["true"], check=True)


@pytest.fixture
def marks(request: pytest.FixtureRequest) -> set[str]:
    return {mark.name for mark in request.node.iter_markers()}


@pytest.mark.parametrize("path", [DEMO, DATA / "pprof"])
def test_a_parameter_below_the_shared_data_marks_a_test(marks: set[str], path: Path) -> None:
    assert ("shared_data" in marks) == (path != DEMO)


def test_a_helper_that_reads_the_shared_data_marks_its_tests(marks: set[str]) -> None:
    def use() -> list[Path]:
        return read_shared()

    assert callable(use) and "shared_data" in marks


def test_a_helper_that_starts_a_process_marks_its_tests_slow(marks: set[str]) -> None:
    assert callable(start_a_server) and "slow" in marks


def test_other_tests_have_no_marks(marks: set[str]) -> None:
    assert not marks & {"shared_data", "slow", "browser"}
