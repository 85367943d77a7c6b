"""Families of argument leaves whose paths differ only by a number: `params['layer_0']`, `params['layer_1']`.

A family is one thing repeated, so the role of one member is a hint for the others.
"""

from __future__ import annotations

import re

import numpy as np

from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.ownership.model_paths import argument_path
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.recording import Recording

NUMBER = re.compile(r"\d+")
ROOT_KEYS = {"args": 2}  # a positional argument is `args[0]`; its number is not a repetition


def sibling_arguments(recording: Recording, arguments: I32) -> I32:
    """Return the family number of each argument value, -1 if its path is unknown or has no number."""
    row, scope = row_of_value(recording)[arguments], recording.allocations.scope
    numbers: dict[tuple[str, ...], int] = {}
    family = np.full(len(arguments), -1, dtype=np.int32)
    for i in np.flatnonzero(row >= 0).tolist():
        path = argument_path(scope[int(row[i])])
        root = ROOT_KEYS.get(path[0], 1) if path else 0
        merged = tuple(NUMBER.sub("*", key) for key in path[root:])
        if merged != tuple(path[root:]):
            family[i] = numbers.setdefault((*path[:root], *merged), len(numbers))
    return family
