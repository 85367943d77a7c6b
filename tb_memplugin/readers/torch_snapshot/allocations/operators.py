"""Operators that allocated, named by PyTorch's C++ frames in their stacks."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.readers.torch_snapshot.contents.pickle_values import number_rows

OPERATOR = re.compile(r"at::_ops::(\w+)::")
BACKWARD = re.compile(r"\b(\w+Backward\d*)\b")


def operators(stacks: Stacks, leaf: I32) -> Text:
    """Return each row's outermost operator, `einsum` or `BmmBackward0: bmm`; empty where the stack has none."""
    operator = _outermost(stacks, OPERATOR)
    backward = _outermost(stacks, BACKWARD)
    distinct, codes = number_rows(np.r_[operator, -1][leaf], np.r_[backward, -1][leaf])
    texts = [
        ": ".join(
            _name(stacks, pattern, node) for pattern, node in ((BACKWARD, back), (OPERATOR, forward)) if node >= 0
        )
        for forward, back in distinct.T.tolist()
    ]
    return Text.of(texts).take(codes)


def _name(stacks: Stacks, pattern: re.Pattern[str], node: int) -> str:
    found = pattern.search(stacks.function[node])
    return found[1] if found else ""


def _outermost(stacks: Stacks, pattern: re.Pattern[str]) -> I32:
    """Return, per frame, the outermost frame of its stack whose function matches; -1 for none."""
    count = len(stacks.parent)
    found = np.where(stacks.function.where(pattern.search), np.arange(count), count)
    above = np.where(stacks.parent >= 0, stacks.parent, count)
    found, above = np.r_[found, count], np.r_[above, count]  # sentinel row: the parent of roots
    while (above < count).any():  # pointer jumping: the distance doubles each round
        outer = found[above]
        found = np.where(outer < count, outer, found)
        above = above[above]
    return np.where(found[:count] < count, found[:count], -1).astype(np.int32)
