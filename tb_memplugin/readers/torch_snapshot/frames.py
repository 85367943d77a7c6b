"""Stacks of Python and C++ frames, from lists of dicts into one tree."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.native.chains import Chains
from tb_memplugin.readers.torch_snapshot.values import Nodes, Values
from tb_memplugin.recording import I32, Stacks, Text

PYTHON = re.compile(r".*\.pyx?|<.*>", re.DOTALL)  # a source file, or what runs code from text calls itself


def read_stacks(values: Values, *columns: Nodes) -> tuple[Stacks, list[I32]]:
    """The tree of all stacks in columns of lists of frames, innermost first, and for each column its rows' leaves.

    A leaf is -1 where a row has no stack.
    """
    found = [values.stacks(column) for column in columns]
    nodes, frame = np.unique(np.concatenate([places for _, _, places in found]), return_inverse=True)
    chains = Chains(np.arange(len(nodes) + 1), np.arange(len(nodes), dtype=np.int32))
    leaves: list[I32] = []
    done = 0
    for rows, lengths, places in found:
        leaf = chains.add(lengths, frame[done : done + len(places)].astype(np.int32))
        done += len(places)
        leaves.append(np.r_[leaf, np.int32(-1)][rows].astype(np.int32))
    parent, label = chains.tree()
    return _tree(values, parent, nodes[label] if len(nodes) else nodes), leaves


def _tree(values: Values, parent: I32, frames: Nodes) -> Stacks:
    file = values.texts(values.column(frames, "filename"))
    # A frame of C++ has an object file or none: it is of the runtime, which has no source here.
    blank = np.array([not PYTHON.fullmatch(file.strings[i]) for i in range(len(file.strings))] + [True])
    return Stacks(
        parent=parent,
        function=values.texts(values.column(frames, "name")),
        file=Text(np.where(blank[file.codes], -1, file.codes).astype(np.int32), file.strings),
        line=values.integers(values.column(frames, "line"), 0).clip(0, 2**31 - 1).astype(np.int32),
    )
