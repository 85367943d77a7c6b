"""Copies of values: prefetches, transfers to and from the host, layouts, casts."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.dataflow.first_use import NOTHING
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.dataflow import DataflowValues, Derivation
from tb_memplugin.native.graph.walks import grouped, owners


def copies(values: DataflowValues) -> tuple[I32, I32]:
    """Return (value, its copy) pairs."""
    pairs = values.derivations
    copied = (pairs.kind == Derivation.ELEMENTWISE) & (pairs.steps == 0)
    return pairs.source[copied], pairs.target[copied]


def copied_from(values: DataflowValues) -> I32:
    """Return the value that each value is a copy of, at the end of a chain of copies; itself if it is none.

    A loop's value is a copy of what enters the loop if every iteration passes it on unchanged.
    """
    (copied, copy), (entering, entered) = copies(values), values.loop_carried
    source, target = np.r_[copied, entering].astype(np.int32), np.r_[copy, entered].astype(np.int32)
    _, order = grouped(np.maximum(values.producer[target], 0), int(values.producer.max(initial=0)) + 1)
    source, target = source[order], target[order]
    origin = np.arange(len(values), dtype=np.int32)
    origin[target] = NOTHING
    everything = np.ones(len(values), dtype=np.uint8)
    for _ in range(2):  # a loop's last value is known only after its body
        owners(origin, source, target, everything)
    found: I32 = np.where(origin >= 0, origin, np.arange(len(values), dtype=np.int32))
    return found
