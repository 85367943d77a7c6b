"""Leaves of one argument whose paths differ by a number only: `params['layer_0']['up']`, `params['layer_1']['up']`.

They are one thing that repeats, so that what is known of one is a hint of what the others are for.
"""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.ownership.model_paths import argument_path
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.recording import Recording

NUMBER = re.compile(r"\d+")
ROOTS = {"args": 2}  # what has no name of its own is `args[0]`: that number is no repetition


def sibling_arguments(recording: Recording, arguments: I32) -> I32:
    """Per argument, given by its value: a number for its family, -1 where its path has no number, or is not known."""
    row, scope = row_of_value(recording)[arguments], recording.allocations.scope
    known: dict[tuple[str, ...], int] = {}
    found = np.full(len(arguments), -1, dtype=np.int32)
    for at in np.flatnonzero(row >= 0).tolist():
        path = argument_path(scope[int(row[at])])
        root = ROOTS.get(path[0], 1) if path else 0
        merged = tuple(NUMBER.sub("*", key) for key in path[root:])
        if merged != tuple(path[root:]):
            found[at] = known.setdefault((*path[:root], *merged), len(known))
    return found
