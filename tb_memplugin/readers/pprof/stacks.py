"""A profile's locations and functions, and the tree of frames that its samples' stacks make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.native.graph.stack_tree import Chains
from tb_memplugin.readers.common.id_index import IdIndex

LINES = 2**31 - 1


class StringTable(Protocol):
    def take(self, entries: I64) -> Text: ...


@dataclass
class Locations:
    """Places by their ids, and the stacks seen so far."""

    index: IdIndex
    function: Text  # of each distinct frame
    file: Text
    line: I32
    chains: Chains
    nowhere: int  # the place of an id that no location has
    unknown: int = 0  # how often that was in a stack

    @staticmethod
    def of(tables: dict[str, dict[str, Any]], strings: StringTable) -> Locations:
        functions, lines = tables["function"], tables["location.line"]
        places = len(tables["location"]["id"])
        # One more of each for what is not there: a location without lines, a function that is not in the file.
        which = IdIndex(functions["id"]).rows(lines["function_id"])
        which = np.where(which < 0, len(functions["id"]), which)
        lines_of = np.bincount(lines["parent"], minlength=places + 1)
        bare = np.flatnonzero(lines_of == 0)  # the last one stands for ids that no location has
        owner = np.r_[lines["parent"], bare]
        order = np.argsort(owner, kind="stable")
        name = strings.take(np.r_[functions["name"], -1])
        file = strings.take(np.r_[functions["filename"], -1])
        code = np.r_[which, np.full(len(bare), len(functions["id"]))][order]
        number = np.r_[np.clip(lines["line"], 0, LINES), np.zeros(len(bare), np.int64)][order]
        # A function is its code object: the same line of it may stand in the file under several ids.
        keys = np.stack([name.codes[code], file.codes[code], number], axis=1)
        frames, first, frame = _distinct(keys)
        return Locations(
            index=IdIndex(tables["location"]["id"]),
            function=name.take(code[first]),
            file=file.take(code[first]),
            line=frames[:, 2].astype(np.int32),
            chains=Chains(np.r_[0, np.cumsum(np.maximum(lines_of, 1))], frame.astype(np.int32)),
            nowhere=places,
        )

    def leaves(self, length: I64, ids: I64) -> I32:
        """The innermost frame of stacks of so many locations each, innermost first; -1 of an empty stack."""
        place = self.index.rows(ids)
        missing = place < 0
        self.unknown += int(missing.sum())
        place[missing] = self.nowhere
        return self.chains.add(length, place)

    def stacks(self) -> Stacks:
        """The tree of all stacks so far."""
        parent, frame = self.chains.tree()
        return Stacks(parent, self.function.take(frame), self.file.take(frame), self.line[frame])


def _distinct(keys: I64) -> tuple[I64, I64, I64]:
    """Distinct rows, the first row that is each, and which of them each row is."""
    distinct, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return distinct, first, which.ravel()
