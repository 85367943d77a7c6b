"""Columns out of a pickle of plain data: of many dicts at once, one key at a time."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.text.strings import gather
from tb_memplugin.native.torch import plain_pickle
from tb_memplugin.native.torch import plain_values as plain
from tb_memplugin.readers.common.limits import is_plausible

Nodes = npt.NDArray[np.uint32]
ROW_BITS = 40  # of a dict's value: the rest is its table
NOTHING = np.uint32(0)  # the node of None, which stands for a missing key as well


def numbered(values: I64) -> tuple[I64, I64]:
    """(the different values, sorted; which of them each is).

    Of a million values few are different: to find these without sorting and then each among them takes a tenth of the
    time that numpy.unique takes for both.
    """
    different = np.unique(values)
    return different, np.searchsorted(different, values)


def numbered_together(*columns: I64) -> tuple[I64, I64]:
    """(the different combinations, a column each; which of them each row is). Equal rows have equal numbers."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        different, number = numbered(column)
        code = numbered(code * max(len(different), 1) + number)[1]
    first = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.int64)
    first[code] = np.arange(len(code))
    return np.stack([column[first] for column in columns]), code


class Values:
    """The values of one file. A column of nodes may hold any kinds; what is not of the kind asked for is missing."""

    def __init__(self, data: bytes | memoryview, path: str) -> None:
        """A pickle, or the same as JSON. InputError naming the file and what is wrong with it."""
        self.data = data if bytes(data[:1]) == b"\x80" else _of_json(data, path)
        try:
            self.plain = plain_pickle.load(self.data)
        except plain_pickle.NotPlain as error:
            remedy = f"{error}; a snapshot of torch.cuda.memory._dump_snapshot holds plain data only"
            raise InputError("Not a PyTorch memory snapshot", path, remedy) from error
        self._key = {self.text(node): node for keys, _ in self.plain.tables for node in keys.tolist()}

    @property
    def root(self) -> int:
        return int(self.plain.root)

    def items(self, node: int) -> Nodes:
        """Of a list; nothing of anything else."""
        return self.plain.items(node) if self.plain.kind[node] == plain.LIST else np.empty(0, np.uint32)

    def is_list(self, node: int) -> bool:
        return bool(self.plain.kind[node] == plain.LIST)

    def get(self, node: int, key: str) -> int:
        """One value of one dict; the node of None where there is none."""
        return int(self.column(np.array([node], np.uint32), key)[0])

    def column(self, dicts: Nodes, key: str) -> Nodes:
        """The value of a key in each of the dicts."""
        found = np.full(len(dicts), NOTHING, dtype=np.uint32)
        wanted = self._key.get(key)
        if wanted is None or not len(dicts):
            return found
        value = self.plain.value[dicts]
        table = np.where((self.plain.kind[dicts] == plain.RECORD) & (value >= 0), value >> ROW_BITS, -1)
        for number in np.unique(table).tolist():
            if number < 0:
                continue
            keys, columns = self.plain.tables[number]
            if len(at := np.flatnonzero(keys == wanted)):
                here = np.flatnonzero(table == number)
                found[here] = columns[at[-1]][value[here] & ((1 << ROW_BITS) - 1)]
        return found

    def integers(self, nodes: Nodes, missing: int = -1) -> I64:
        """What needs the top bit of 64, as high addresses do, is negative; more than 64 bits are missing."""
        kind, value = self.plain.kind[nodes], self.plain.value[nodes]
        return np.where((kind == plain.INT) | (kind == plain.BOOL), value, missing)

    def sizes(self, nodes: Nodes) -> I64:
        """Bytes: never negative, 0 where none are told or none can be."""
        found = self.integers(nodes, 0)
        return np.where(is_plausible(found), found, 0).clip(0)

    def known(self, nodes: Nodes) -> npt.NDArray[np.bool_]:
        return np.asarray(self.plain.kind[nodes] == plain.INT)

    def texts(self, nodes: Nodes) -> Text:
        """Text; what is none is empty."""
        kind, value = self.plain.kind[nodes], self.plain.value[nodes]
        used, codes = numbered(np.where(kind == plain.TEXT, value, -1))
        has_none = bool(len(used) and used[0] < 0)
        used = used[1:] if has_none else used
        blob, offsets = gather(self.data, self.plain.text_start[used], self.plain.text_length[used])
        return Text((codes - has_none).astype(np.int32), Strings(blob, offsets))

    def text(self, node: int) -> str:
        return self.texts(np.array([node], np.uint32))[0]

    def stacks(self, nodes: Nodes) -> tuple[I64, I64, Nodes]:
        """(distinct list of each row, -1 where it has none; lengths of these lists; their nodes, end to end)."""
        kind, value = self.plain.kind[nodes], self.plain.value[nodes]
        lists, number = numbered(np.where(kind == plain.LIST, value, -1))
        has_none = bool(len(lists) and lists[0] < 0)
        offsets, places = self.plain.flat(lists[int(has_none) :].astype(np.int32))
        return number.astype(np.int64) - has_none, np.diff(offsets), places

    def pairs(self, node: int) -> Iterator[tuple[str, Any]]:
        """The plain values of a small dict."""
        value = int(self.plain.value[node])
        if self.plain.kind[node] != plain.RECORD or value < 0:
            return
        keys, columns = self.plain.tables[value >> ROW_BITS]
        for key, found in zip(keys.tolist(), columns[:, value & ((1 << ROW_BITS) - 1)].tolist(), strict=True):
            yield self.text(key), self._plain(found)

    def _plain(self, node: int) -> Any:
        kind, value = int(self.plain.kind[node]), int(self.plain.value[node])
        if kind == plain.TEXT:
            return self.text(node)
        if kind == plain.FLOAT:
            return float(np.int64(value).view(np.float64))
        return bool(value) if kind == plain.BOOL else value if kind == plain.INT else None


def _of_json(data: bytes | memoryview, path: str) -> bytes:
    """The viewer of PyTorch takes JSON as well. Written as a pickle, there is one way to read both."""
    try:
        return pickle.dumps(json.loads(bytes(data)), protocol=4)
    except (ValueError, RecursionError) as error:
        what = "neither a pickle of protocol 2 to 5 nor JSON"
        raise InputError("Not a PyTorch memory snapshot", path, f"{what}: {error}") from error
