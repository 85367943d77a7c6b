"""Call stacks of hostile files are bounded in answers."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.tables import MAX_FRAMES, Stacks
from tb_memplugin.model.text import Text


def test_the_innermost_frames_of_a_very_deep_stack_are_listed() -> None:
    depth = MAX_FRAMES + 10
    names = Text.of([f"f{frame}" for frame in range(depth)])
    stacks = Stacks(np.arange(-1, depth - 1, dtype=np.int32), names, names, np.zeros(depth, np.int32))
    frames = stacks.frames(depth - 1)
    assert len(frames) == MAX_FRAMES
    assert frames[0][0] == f"f{depth - 1}"
