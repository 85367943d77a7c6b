"""Owner frames computed for all frames at once, against a walk up each stack."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_memplugin.analysis.ownership.source_lines import callers_first, framework_frames, nearest_frames
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text

FILES = ["train.py", "/x/site-packages/jax/_src/pjit.py", "core.py", "pxla.py", ""]
a_tree = st.lists(st.tuples(st.integers(-1, 10), st.sampled_from(FILES)), max_size=12)


def stacks_of(frames: list[tuple[int, str]]) -> Stacks:
    """Return frames in which parents come before their children."""
    parent = [min(above, i - 1) for i, (above, _) in enumerate(frames)]
    files = Text.of([file for _, file in frames])
    return Stacks(np.array(parent, np.int32), files, files, np.zeros(len(frames), np.int32))


@settings(max_examples=200, derandomize=True)
@given(a_tree)
def test_all_at_once_is_as_one_by_one(frames: list[tuple[int, str]]) -> None:
    stacks = stacks_of(frames)
    walked = {at.frame: at.framework for at in callers_first(stacks, range(len(frames)))}
    assert framework_frames(stacks).tolist() == [walked[i] for i in range(len(frames))]


@settings(max_examples=200, derandomize=True)
@given(a_tree, st.data())
def test_the_nearest_is_the_first_on_the_way_up(frames: list[tuple[int, str]], data: st.DataObject) -> None:
    stacks = stacks_of(frames)
    wanted = data.draw(st.lists(st.booleans(), min_size=len(frames), max_size=len(frames)))
    expected = []
    for at in range(len(frames)):
        while at >= 0 and not wanted[at]:
            at = int(stacks.parent[at])
        expected.append(at)
    assert nearest_frames(stacks, np.array(wanted, dtype=bool)).tolist() == expected


def test_a_cycle_in_a_broken_file_ends() -> None:
    stacks = Stacks(np.array([1, 0], np.int32), Text.of(["f", "g"]), Text.of(["core.py"] * 2), np.zeros(2, np.int32))
    assert nearest_frames(stacks, np.zeros(2, dtype=bool)).tolist() == [-1, -1]
    assert framework_frames(stacks).tolist() == [False, False]


@pytest.mark.parametrize(
    ("file", "framework"),
    [
        ("torch/optim/adam.py", True),
        ("/src/pytorch/torch/_tensor.py", True),
        ("torch/nn/modules/linear.py", True),
        ("/home/me/torch/train.py", False),
        ("mytorch/optim/adam.py", False),
    ],
)
def test_pytorchs_own_frames_are_known_wherever_it_lies(file: str, framework: bool) -> None:
    assert framework_frames(stacks_of([(-1, file)])).tolist() == [framework]


def test_frames_of_the_process_that_compiles_for_fit_are_not_the_users() -> None:
    stacks = stacks_of([(-1, "/home/me/repository/tb_memplugin/fit/compiling/child.py"), (0, "/home/me/fit/child.py")])
    assert framework_frames(stacks).tolist() == [True, False]
