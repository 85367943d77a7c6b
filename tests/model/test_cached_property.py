"""Properties that each object computes once, while other objects of the class compute theirs."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tb_memplugin
from tb_memplugin.model.lazy import cached_property

SECONDS = 60


class Slow:
    """An object whose value is there once `may_end` is set."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.computed = 0

    @cached_property
    def value(self) -> str:
        """A value."""
        self.computed += 1
        self.begun.set()
        assert self.may_end.wait(SECONDS)
        return "value"


def test_an_object_does_not_wait_for_another_of_its_class() -> None:
    slow, quick = Slow(), Slow()
    quick.may_end.set()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lambda: slow.value)
        assert slow.begun.wait(SECONDS)
        try:
            assert pool.submit(lambda: quick.value).result(SECONDS) == "value"
        finally:
            slow.may_end.set()
        assert waiting.result() == "value"


def test_threads_that_need_the_same_value_share_its_computation() -> None:
    slow = Slow()
    with ThreadPoolExecutor() as pool:
        every = [pool.submit(lambda: slow.value) for _ in range(3)]
        assert slow.begun.wait(SECONDS)
        slow.may_end.set()
        assert [each.result() for each in every] == ["value"] * 3
    assert slow.computed == 1


def test_a_failure_is_not_kept() -> None:
    class Failing:
        computed = 0

        @cached_property
        def value(self) -> int:
            self.computed += 1
            return 1 // (self.computed - 1)

    failing = Failing()
    with pytest.raises(ZeroDivisionError):
        _ = failing.value
    assert failing.value == 1 and vars(failing)["value"] == 1


def test_the_property_itself_is_that_of_its_class() -> None:
    assert isinstance(Slow.value, cached_property) and Slow.value.__doc__ == "A value."


def test_no_module_uses_the_property_that_locks_all_objects_of_a_class() -> None:
    package = Path(tb_memplugin.__file__).parent
    used = re.compile(r"from functools import .*\bcached_property\b")
    users = [path.name for path in package.rglob("*.py") if used.search(path.read_text())]
    assert users == ["lazy.py"]
