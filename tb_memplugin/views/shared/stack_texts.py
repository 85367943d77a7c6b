"""What a stack is called where there is no room for its frames."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.frames import callers_first, frame_text
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text


@memoize
def stack_texts(recording: Recording) -> Text:
    """Each row's stack, `layer (model.py:20), 14 frames`: the user's innermost frame, or a framework's, and its depth.

    One entry for each stack, of which those of one name are numbered; no text where there is no stack.
    """
    stacks = recording.stacks
    leaves, code = np.unique(recording.allocations.stack, return_inverse=True)
    # By frame: the one that its stack is called by, whether that is the user's own, and how many lead to it.
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
        text = f"{named}, {depth[leaf]} frame{'s' * (depth[leaf] != 1)}"
        seen[text] += 1
        texts.append(text if seen[text] == 1 else f"{text} (stack {seen[text]})")
    return Text(code.astype(np.int32), Strings.of(texts))
