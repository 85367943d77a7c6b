"""A call that concurrent callers share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tb_memplugin.catalog.catalog import SharedCall


def test_those_who_ask_during_a_call_share_the_next_one() -> None:
    state, calls, begun, go_on = [0], list[int](), threading.Event(), threading.Event()

    def read() -> int:
        found = state[0]
        calls.append(found)
        begun.set()
        go_on.wait(60)
        return found

    shared = SharedCall(read)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(shared)
        assert begun.wait(60)
        state[0] = 1  # the first call has not seen this, and those who ask from now on must
        later = [threads.submit(shared) for _ in range(7)]
        go_on.set()
        assert first.result(60) == 0
        assert {each.result(60) for each in later} == {1}


def test_a_later_call_is_made_again() -> None:
    numbers = iter(range(3))
    shared = SharedCall(lambda: next(numbers))
    assert [shared(), shared(), shared()] == [0, 1, 2]
    with pytest.raises(StopIteration):
        shared()
