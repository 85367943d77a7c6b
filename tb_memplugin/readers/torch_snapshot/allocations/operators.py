"""Operators that allocated, named by PyTorch's C++ frames in their stacks."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.readers.torch_snapshot.contents.pickle_values import number_rows

OPERATOR = re.compile(r"at::_ops::(\w{1,200})::")
BACKWARD = re.compile(r"\b(\w{1,200}Backward\d{0,9})\b")


def operators(stacks: Stacks, leaf: I32) -> Text:
    """Return each row's outermost operator, `einsum` or `BmmBackward0: bmm`; empty where the stack has none."""
    operator = _outermost(stacks, OPERATOR)
    backward = _outermost(stacks, BACKWARD)
    distinct, codes = number_rows(np.r_[operator, -1][leaf], np.r_[backward, -1][leaf])
    forwards, backs = _names(stacks, OPERATOR, distinct[0]), _names(stacks, BACKWARD, distinct[1])
    texts = [": ".join(filter(None, names)) for names in zip(backs, forwards, strict=True)]
    return Text.of(texts).take(codes)


def _names(stacks: Stacks, pattern: re.Pattern[str], nodes: I64) -> list[str]:
    """Return the name in the function of each frame; empty for -1. A long function is searched once."""
    codes = np.where(nodes >= 0, stacks.function.codes[nodes], -1).tolist() if len(stacks.parent) else [-1] * len(nodes)
    found = {code: pattern.search(stacks.function.strings[code]) for code in set(codes) if code >= 0}
    names = {code: match[1] if match else "" for code, match in found.items()}
    return [names.get(code, "") for code in codes]


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
