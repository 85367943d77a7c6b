"""Which operator allocated: where stacks hold frames of C++, PyTorch's own are named after it."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.readers.torch_snapshot.pickle_columns import numbered_together

OPERATOR = re.compile(r"at::_ops::(\w+)::")
BACKWARD = re.compile(r"\b(\w+Backward\d*)\b")


def operators(stacks: Stacks, leaf: I32) -> Text:
    """`einsum`, the outermost operator that the stack is in, or `BmmBackward0: bmm`; empty where it tells none."""
    operator = _outermost(stacks, OPERATOR)
    backward = _outermost(stacks, BACKWARD)
    different, codes = numbered_together(np.r_[operator, -1][leaf], np.r_[backward, -1][leaf])
    texts = [
        ": ".join(_name(stacks, pattern, node) for pattern, node in ((BACKWARD, back), (OPERATOR, own)) if node >= 0)
        for own, back in different.T.tolist()
    ]
    return Text.of(texts).take(codes)


def _name(stacks: Stacks, pattern: re.Pattern[str], node: int) -> str:
    found = pattern.search(stacks.function[node])
    return found[1] if found else ""


def _outermost(stacks: Stacks, pattern: re.Pattern[str]) -> I32:
    """For each node the outermost one, of it and what encloses it, whose function is such a one; -1 for none."""
    strings = stacks.function.strings
    matches = np.array([*(bool(pattern.search(strings[i])) for i in range(len(strings))), False])
    count = len(stacks.parent)
    found = np.where(matches[stacks.function.codes], np.arange(count), count)
    above = np.where(stacks.parent >= 0, stacks.parent, count)
    found, above = np.r_[found, count], np.r_[above, count]  # a node above all, which is none
    while (above < count).any():  # each round looks twice as far up
        outer = found[above]
        found = np.where(outer < count, outer, found)
        above = above[above]
    return np.where(found[:count] < count, found[:count], -1).astype(np.int32)
