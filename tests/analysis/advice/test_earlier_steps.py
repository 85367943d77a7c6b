from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.advised import MIB, given, kinds
from support.allocators import Block, allocator

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Regions

STEPS = 12


def work() -> list[Block]:
    return [Block("temporary", 8 * MIB, step, step) for step in range(STEPS)]


def run(blocks: list[Block]) -> Recording:
    return allocator([*blocks, *work()], STEPS)


def test_what_earlier_steps_leave_behind() -> None:
    advice = given(run([Block("history", 2 * MIB, step, None) for step in range(STEPS)]), AdviceKind.LATE_FREE)
    assert advice.title == "Memory from earlier steps is never freed: history"
    assert advice.bytes == advice.saving_bytes == 2 * MIB * (STEPS - 1)  # that of the last step is its own
    assert len(advice.rows) == STEPS - 1
    assert "11 allocations from earlier steps, made at history, still take 22.0 MiB." in advice.sentence


def test_earlier_steps_are_found_without_regions() -> None:
    """Drop the regions, because PyTorch's profiler records sizes only."""
    told = run([Block("history", 2 * MIB, step, None) for step in range(STEPS)])
    nowhere = np.full_like(told.allocations.region, -1)
    none = Regions(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))
    bare = replace(told, allocations=replace(told.allocations, region=nowhere), regions=none)
    assert given(bare, AdviceKind.LATE_FREE).saving_bytes == given(told, AdviceKind.LATE_FREE).saving_bytes


def test_state_of_the_step_before_beside_that_of_this_one() -> None:
    kept = [Block("state", 16 * MIB, step, step + 1 if step + 1 < STEPS else None) for step in range(-1, STEPS)]
    advice = given(run(kept), AdviceKind.LATE_FREE)
    assert advice.title == "Memory from the previous step is freed late: state"
    assert advice.bytes == advice.saving_bytes == 16 * MIB


def test_steps_that_free_what_they_allocate() -> None:
    assert AdviceKind.LATE_FREE not in kinds(run([Block("weights", 64 * MIB, 0, None)]))


def test_one_line_that_allocates_several_sizes_gives_one_entry() -> None:
    """Allocate a state of three arrays on one line of the user's code, again in each step."""
    kept = [
        Block(f"w{i}", (4 + i) * MIB, step, step + 1 if step + 1 < STEPS else None, stack=1)
        for step in range(-1, STEPS)
        for i in range(3)
    ]
    advice = given(run(kept), AdviceKind.LATE_FREE)
    assert advice.title == "Memory from the previous step is freed late: layer (model.py:20)"
    assert advice.bytes == advice.saving_bytes == (4 + 5 + 6) * MIB
