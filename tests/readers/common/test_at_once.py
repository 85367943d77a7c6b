"""Two loops at once: results, errors and the memory that they share."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support.profiles import compiled_programs

from tb_memplugin.errors import InputError
from tb_memplugin.readers.common.budget import BASE_BYTES, BudgetShare, ReadBudget, at_once
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.readers.hlo.module import tables


def test_both_results_are_returned() -> None:
    assert at_once(lambda: 1, lambda: "two") == (1, "two")


def test_a_failure_of_either_is_raised_after_the_thread_has_ended() -> None:
    def fail() -> int:
        raise ValueError("broken")

    before = threading.active_count()
    for first, second in ((fail, lambda: 1), (lambda: 1, fail)):
        with pytest.raises(ValueError, match="broken"):
            at_once(first, second)
        assert threading.active_count() == before


def test_two_shares_of_a_budget_take_no_more_than_all_of_it() -> None:
    budget = ReadBudget(b"", "file")
    shares = BudgetShare(budget), BudgetShare(budget)
    for share in shares:
        share.charge(BASE_BYTES // 2)
        with pytest.raises(InputError, match="too large to read"):
            share.charge(1)
    assert budget.left == 0


@pytest.mark.parametrize("program", compiled_programs()[:4], ids=str)
def test_a_large_program_is_the_same_as_a_small_one(program: object, monkeypatch: pytest.MonkeyPatch) -> None:
    data: bytes = program.data  # type: ignore[attr-defined]
    small = read_hlo(data, source="")
    monkeypatch.setattr(tables, "LARGE_BYTES", 0)
    large = read_hlo(data, source="")
    assert len(small) == len(large) > 0
    for one, other in zip(small, large, strict=True):
        for name in ("size", "charge", "start", "end", "stack"):
            np.testing.assert_array_equal(getattr(one.allocations, name), getattr(other.allocations, name))
        rows = range(len(one.allocations))
        assert [one.allocations.name[row] for row in rows] == [other.allocations.name[row] for row in rows]
    with pytest.raises(InputError, match="damaged"):
        read_hlo(data[:-1], source="")
