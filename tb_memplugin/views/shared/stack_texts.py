"""Short names of call stacks, for where there is no room for all frames."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.frames import callers_first, frame_text
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.sizes import counted


@memoize
def stack_texts(recording: Recording) -> Text:
    """Return each row's stack as text, `layer (model.py:20), 14 frames`: the user's innermost frame and the depth.

    Without a user frame, a framework's is used. Different stacks with equal names are numbered; without a stack, the
    text is empty.
    """
    stacks = recording.stacks
    leaves, code = np.unique(recording.allocations.stack, return_inverse=True)
    # By frame: the frame that names its stack, whether that is a user frame, and the depth.
    best, own, depth = dict[int, int](), dict[int, bool](), dict[int, int]()
    for frame, caller, framework in callers_first(stacks, leaves.tolist()):
        takes = bool(stacks.file[frame]) and not (framework and own.get(caller, False))
        best[frame] = frame if takes else best.get(caller, -1)
        own[frame] = own.get(caller, False) or (takes and not framework)
        depth[frame] = depth.get(caller, 0) + 1
    seen, texts = Counter[str](), list[str]()
    for leaf in leaves.tolist():
        if leaf not in depth:
            texts.append("")
            continue
        named = frame_text(stacks, best[leaf] if best[leaf] >= 0 else leaf)
        text = f"{named}, {counted(depth[leaf], 'frame')}"
        seen[text] += 1
        texts.append(text if seen[text] == 1 else f"{text} (stack {seen[text]})")
    return Text(code.astype(np.int32), Strings.of(texts))
