"""Memoized functions of a recording."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from support.recordings import recording

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.recording import Recording


def test_threads_that_need_a_result_at_once_share_its_computation() -> None:
    started, finish, calls = Event(), Event(), list[int]()

    @memoize
    def slow(of: Recording) -> int:
        calls.append(of.length)
        started.set()
        assert finish.wait(60)
        return of.length

    @memoize
    def other(of: Recording) -> int:
        return -of.length

    one = recording([], 4)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(slow, one)
        assert started.wait(60)
        second = pool.submit(slow, one)
        assert pool.submit(other, one).result(60) == -4  # which need not wait
        finish.set()
        assert (first.result(60), second.result(60)) == (4, 4)
    assert calls == [4]


def test_a_failure_is_not_cached() -> None:
    calls = list[int]()

    @memoize
    def fails_once(of: Recording) -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError
        return of.length

    one = recording([], 4)
    with pytest.raises(ValueError):
        fails_once(one)
    assert (fails_once(one), fails_once(one), len(calls)) == (4, 4, 2)
