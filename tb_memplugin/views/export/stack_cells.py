"""Complete call stacks as text, for one cell of an exported table."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.ownership.frames import frame_text
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.cached_property import cached_property
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.views.export.export_table import MAX_CELL_LENGTH, truncate

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
