"""The source line of each allocation."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

MAX_DOUBLINGS = 16  # enough for stacks of 65,536 frames, which no runtime produces


@memoize
def sources(recording: Recording) -> Text:
    """Return each row's source line, `train.py:12`: its innermost frame with a file. Frames of runtimes have none."""
    stacks, count = recording.stacks, len(recording.stacks.parent)
    files = stacks.file
    named = files.nonempty
    # Pointer doubling: each frame points to itself if it has a file, else to a caller, twice as far in each round.
    # The index `count` stands for no frame.
    found = np.r_[np.where(named, np.arange(count), np.where(stacks.parent >= 0, stacks.parent, count)), count]
    done = np.r_[named, True]
    for _ in range(MAX_DOUBLINGS):
        found = np.where(done[found], found, found[found])
    found = np.where(done[found], found, count)  # a cycle, in a damaged file
    frames, code = np.unique(found[recording.allocations.stack], return_inverse=True)
    texts = [f"{files[frame]}:{stacks.line[frame]}" if frame < count else "" for frame in frames.tolist()]
    return Text.of(texts).take(code)  # equal texts get one code, since the page groups rows by code
