"""Locations and functions of a profile, and the tree of frames of its samples' stacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.native.graph.stack_tree import Chains
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.id_index import IdIndex

MAX_LINE = 2**31 - 1


class StringTable(Protocol):
    def take(self, entries: I64) -> Text: ...


@dataclass
class Locations:
    """Locations by id, and the stacks added so far."""

    index: IdIndex
    function: Text  # of each distinct frame
    file: Text
    line: I32
    chains: Chains
    missing_location: int  # stands for ids without a location
    budget: ReadBudget
    unknown: int = 0  # number of stack entries with such an id

    @staticmethod
    def of(tables: dict[str, dict[str, Any]], strings: StringTable, budget: ReadBudget) -> Locations:
        functions, lines = tables["function"], tables["location.line"]
        locations = len(tables["location"]["id"])
        # One extra row each stands for locations without lines and for functions that the file lacks.
        function_row = IdIndex(functions["id"]).rows(lines["function_id"])
        function_row = np.where(function_row < 0, len(functions["id"]), function_row)
        line_count = np.bincount(lines["parent"], minlength=locations + 1)
        without_lines = np.flatnonzero(line_count == 0)  # the last one stands for ids without a location
        owner = np.r_[lines["parent"], without_lines]
        order = np.argsort(owner, kind="stable")
        name = strings.take(np.r_[functions["name"], -1])
        file = strings.take(np.r_[functions["filename"], -1])
        code = np.r_[function_row, np.full(len(without_lines), len(functions["id"]))][order]
        number = np.r_[np.clip(lines["line"], 0, MAX_LINE), np.zeros(len(without_lines), np.int64)][order]
        # JAX writes a function per code object, so the same line may occur under several ids.
        keys = np.stack([name.codes[code], file.codes[code], number], axis=1)
        frames, first, frame = _distinct_rows(keys)
        return Locations(
            index=IdIndex(tables["location"]["id"]),
            function=name.take(code[first]),
            file=file.take(code[first]),
            line=frames[:, 2].astype(np.int32),
            chains=Chains(np.r_[0, np.cumsum(np.maximum(line_count, 1))], frame.astype(np.int32), budget),
            missing_location=locations,
            budget=budget,
        )

    def leaves(self, length: I64, ids: I64) -> I32:
        """Return the leaf frame of each stack, -1 for an empty one. `ids`: all stacks' locations, innermost first."""
        location = self.index.rows(ids)
        missing = location < 0
        self.unknown += int(missing.sum())
        location[missing] = self.missing_location
        return self.chains.add(length, location)

    def stacks(self) -> Stacks:
        """Return the tree of all stacks added so far."""
        parent, frame = self.chains.tree()
        return Stacks(parent, self.function.take(frame), self.file.take(frame), self.line[frame])


def _distinct_rows(keys: I64) -> tuple[I64, I64, I64]:
    """Return distinct rows, the first index of each, and the distinct row of each row."""
    distinct, first, function_row = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return distinct, first, function_row.ravel()
