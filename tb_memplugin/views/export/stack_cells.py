"""Stacks with all of their frames, as text in one cell."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tb_memplugin.analysis.ownership.frames import frame_text
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.views.export.export_table import LONGEST, fitting

CALLED_BY = " <- "
AT_ONCE = 1 << 29  # characters of all stacks that are asked for together


class WholeStacks:
    """The stacks of a recording; what they have in common is worked out once."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks

    def texts(self, leaves: I32) -> Text:
        """Of each leaf `layer (model.py:20) <- step (train.py:7)`, innermost first; no text where there is no stack.

        What is too long for a cell is cut, or where many are asked for, for memory: real ones are a tenth of that.
        """
        distinct, code = np.unique(leaves, return_inverse=True)
        longest = min(LONGEST, AT_ONCE // max(len(distinct), 1))
        return Text(code.astype(np.int32), Strings.of([self._text(leaf, longest) for leaf in distinct.tolist()]))

    def _text(self, leaf: int, longest: int) -> str:
        """A cycle in a broken file ends it."""
        frames, parents = self._frames, self._parents
        told, seen, length = list[str](), set[int](), 0
        while 0 <= leaf < len(parents) and leaf not in seen and length <= longest:
            seen.add(leaf)
            told.append(frames[leaf])
            length += len(frames[leaf]) + len(CALLED_BY)
            leaf = parents[leaf]
        return fitting(CALLED_BY.join(told), longest)

    @cached_property
    def _parents(self) -> list[int]:
        parents: list[int] = self._stacks.parent.tolist()
        return parents

    @cached_property
    def _frames(self) -> list[str]:
        return [frame_text(self._stacks, frame) for frame in range(len(self._stacks.parent))]
