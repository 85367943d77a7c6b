"""Call stacks as text: short names for the page, complete stacks for exported tables, and the code around frames."""

import json
from collections import Counter
from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.source_lines import callers_first, frame_text
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import CODE, BadParameter, FreeText
from tb_memplugin.questions.asking.source import SourceCode
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import counted

# Characters of a cell. The limit of Python's csv module is one more, which the quote that disarms a formula takes.
MAX_CELL_LENGTH = 131_071
ELLIPSIS = "..."
CALLED_BY = " <- "
MAX_TOTAL_LENGTH = 1 << 29  # characters of all stacks of one call, to bound memory


class StackCells:
    """The stacks of a recording as text; the text of each frame is computed once."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks

    def texts(self, leaves: I32) -> Text:
        """Return the stack of each leaf, `layer (model.py:20) <- step (train.py:7)`; empty where there is none.

        Stacks that are too long for a cell are cut, and shorter ones too where memory for so many would run out. The
        limit is ten times the length of real stacks.
        """
        distinct, code = np.unique(leaves, return_inverse=True)
        max_length = min(MAX_CELL_LENGTH, MAX_TOTAL_LENGTH // max(len(distinct), 1))
        return Text(code.astype(np.int32), Strings.of([self._text(leaf, max_length) for leaf in distinct.tolist()]))

    def _text(self, leaf: int, max_length: int) -> str:
        """Return the stack of a leaf; a cycle, in a damaged file, ends it."""
        frames, parents = self._frames, self._parents
        texts, seen, length = list[str](), set[int](), 0
        while 0 <= leaf < len(parents) and leaf not in seen and length <= max_length:
            seen.add(leaf)
            texts.append(frames[leaf])
            length += len(frames[leaf]) + len(CALLED_BY)
            leaf = parents[leaf]
        return truncate(CALLED_BY.join(texts), max_length)

    @cached_property
    def _parents(self) -> list[int]:
        parents: list[int] = self._stacks.parent.tolist()
        return parents

    @cached_property
    def _frames(self) -> list[str]:
        return [frame_text(self._stacks, frame) for frame in range(len(self._stacks.parent))]


def truncate(text: str, max_length: int = MAX_CELL_LENGTH) -> str:
    """Return a text that fits into a cell of an exported table."""
    return text if len(text) <= max_length else text[: max_length - len(ELLIPSIS)] + ELLIPSIS


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


MAX_FRAMES = 64
MAX_QUERY = 32_768
# A line number that no file has.
MAX_LINE_NUMBER = 1 << 31


class CodeJson(TypedDict):
    """Lines around a frame's line: the file's path below its root, its complete path, and the first line's number."""

    path: str
    file: str
    first: int
    lines: list[str]


class SourceCodeJson(TypedDict):
    """The code of each frame; null where its file is not readable."""

    frames: list[CodeJson | None]


@endpoint("source_code", CODE, FreeText("frames"))
def source_code(code: SourceCode, frames: str) -> SourceCodeJson:
    """Return the code around some frames, which the query lists as JSON: `[["train.py", 12], ...]`."""
    found = [code.around(file, line) for file, line in _frames(frames)]
    return {"frames": [None if each is None else record(CodeJson, each) for each in found]}


def _frames(text: str) -> list[tuple[str, int]]:
    remedy = f'give up to {MAX_FRAMES}, such as [["train.py", 12]]'
    try:
        listed = json.loads(text) if len(text) <= MAX_QUERY else None
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list) or len(listed) > MAX_FRAMES:
        raise BadParameter("Not a list of frames", text[:80], remedy)
    for frame in listed:
        if not (isinstance(frame, list) and len(frame) == 2 and isinstance(frame[0], str)):
            raise BadParameter("Not a frame", str(frame)[:80], remedy)
        if type(frame[1]) is not int or not 0 <= frame[1] < MAX_LINE_NUMBER:
            raise BadParameter("Not a line number", str(frame[1])[:80], remedy)
    return [(file, line) for file, line in listed]
