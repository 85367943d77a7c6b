"""Call stacks of Python and C++ frames, from lists of dicts into one tree."""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.graph.stack_tree import Chains
from tb_memplugin.readers.torch_snapshot.pickle_values import PickleNodes, PickleValues

# A frame in one string, as the profiler writes it: `train.py(7): step`.
PROFILED = re.compile(r"(.+\.pyx?|<.+>)\((\d{1,9})\): (.+)", re.DOTALL)
PYTHON = re.compile(r".*\.pyx?|<.*>", re.DOTALL)  # a source file, or the name of code without one, "<string>"


def read_stacks(values: PickleValues, *columns: PickleNodes) -> tuple[Stacks, list[I32]]:
    """Read the tree of all stacks from columns of frame lists, innermost first. Also return the leaves per column.

    A leaf is -1 where a row has no stack.
    """
    found = [values.stacks(column) for column in columns]
    nodes, frame = np.unique(np.concatenate([frame_nodes for _, _, frame_nodes in found]), return_inverse=True)
    chains = Chains(np.arange(len(nodes) + 1), np.arange(len(nodes), dtype=np.int32))
    leaves: list[I32] = []
    used = 0
    for rows, lengths, frame_nodes in found:
        leaf = chains.add(lengths, frame[used : used + len(frame_nodes)].astype(np.int32))
        used += len(frame_nodes)
        leaves.append(np.r_[leaf, np.int32(-1)][rows].astype(np.int32))
    parent, label = chains.tree()
    return _tree(values, parent, nodes[label] if len(nodes) else nodes), leaves


def _tree(values: PickleValues, parent: I32, frames: PickleNodes) -> Stacks:
    function, file = values.texts(values.column(frames, "name")), values.texts(values.column(frames, "filename"))
    line = values.integers(values.column(frames, "line"), 0).clip(0, 2**31 - 1).astype(np.int32)
    function, file, line = _split_profiler_frames(function, file, line)
    # The file of a C++ frame is an object file or missing. It is no source, so it is dropped.
    is_source = file.where(PYTHON.fullmatch)
    return Stacks(
        parent=parent,
        function=function,
        file=Text(np.where(is_source, file.codes, -1).astype(np.int32), file.strings),
        line=line,
    )


def _split_profiler_frames(function: Text, file: Text, line: I32) -> tuple[Text, Text, I32]:
    """Split frames such as `train.py(7): step`, which PyTorch writes when it converts its profiler's events."""
    strings = function.strings
    parts = [PROFILED.fullmatch(strings[i]) for i in range(len(strings))]
    if not any(parts):
        return function, file, line
    names = Text.of([part[3] if part else strings[i] for i, part in enumerate(parts)])
    files = Text.of([part[1] if part else "" for part in parts])
    numbers = np.array([*(int(part[2]) if part else -1 for part in parts), -1])[function.codes]
    of_file = np.r_[files.codes, np.int32(-1)][function.codes]
    split = numbers >= 0
    codes = np.where(split, of_file, np.where(file.codes >= 0, file.codes + len(files.strings), -1))
    return (
        Text(np.r_[names.codes, np.int32(-1)][function.codes].astype(np.int32), names.strings),
        Text(codes.astype(np.int32), Strings.joined(files.strings, file.strings)),
        np.where(split, numbers, line).astype(np.int32),
    )
