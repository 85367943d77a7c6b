"""Where each row was made, as a file and a line."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

FARTHEST = 16  # doublings: stacks of 65,536 frames, which no runtime makes


@memoize
def sources(recording: Recording) -> Text:
    """Where each row was made, `train.py:12`: the innermost frame that has a file, for those of a runtime have none."""
    stacks, count = recording.stacks, len(recording.stacks.parent)
    files = stacks.file
    named = np.array([*(bool(files.strings[code]) for code in range(len(files.strings))), False])[files.codes]
    # Of each frame: itself, or else the one to look at next, further and further out. Past all of them is none.
    found = np.r_[np.where(named, np.arange(count), np.where(stacks.parent >= 0, stacks.parent, count)), count]
    done = np.r_[named, True]
    for _ in range(FARTHEST):
        found = np.where(done[found], found, found[found])
    found = np.where(done[found], found, count)  # a circle, in a broken file
    frames, code = np.unique(found[recording.allocations.stack], return_inverse=True)
    texts = [f"{files[frame]}:{stacks.line[frame]}" if frame < count else "" for frame in frames.tolist()]
    return Text.of(texts).take(code)  # equal texts are one, for the page gathers rows by them
