"""PickleValues of a pickle of plain data, read as columns: one key of many dicts at a time."""

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
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import is_plausible

PickleNodes = npt.NDArray[np.uint32]
ROW_BITS = 40  # low bits of a dict's value; the rest is its table
NODE_BYTES = 16  # of an item of a list while the list is read
FRAME_BYTES = 128  # of a frame while the tree of stacks is made
ROW_BYTES = 512  # of an event or a block while its columns are read; measured: 300
# Python objects that json.loads makes, and their pickle, by the characters that stand for them: an empty dict, or the
# first item of one, 300 bytes.
JSON_BYTES = {b"{": 320, b"[": 160, b",": 48, b":": 48, b'"': 40}
NONE_NODE = np.uint32(0)  # the node of None, also used for missing keys


def number_values(values: I64) -> tuple[I64, I64]:
    """Return (distinct values, sorted; index of each value in them).

    Few values are distinct among a million, so a search among those takes a tenth of the time of np.unique's inverse.
    """
    distinct = np.unique(values)
    return distinct, np.searchsorted(distinct, values)


def number_rows(*columns: I64) -> tuple[I64, I64]:
    """Return (distinct rows as one array per column, stacked; index of each row in them)."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        distinct, number = number_values(column)
        code = number_values(code * max(len(distinct), 1) + number)[1]
    first = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.int64)
    first[code] = np.arange(len(code))
    return np.stack([column[first] for column in columns]), code


class PickleValues:
    """The values of one file. Accessors treat a node of another type as missing.

    A file stores equal lists and texts once, however often it refers to them. So what it expands to is charged to the
    file's budget before it is made.
    """

    def __init__(self, data: bytes | memoryview, path: str) -> None:
        """Parse a pickle, or the same data as JSON. Raises InputError naming the file and the fault."""
        self.budget = ReadBudget(data, path)
        self.data = data if bytes(data[:1]) == b"\x80" else _pickle_json(data, self.budget)
        try:
            self.plain = plain_pickle.load(self.data, self.budget.left)
        except plain_pickle.NotPlain as error:
            remedy = f"{error}; torch.cuda.memory._dump_snapshot writes only plain data"
            raise InputError("Not a PyTorch memory snapshot", path, remedy) from error
        except plain_pickle.TooLarge as error:
            raise self.budget.exceeded(self.budget.limit) from error
        self.budget.charge(self.plain.nbytes)
        keys = np.unique(np.concatenate([np.empty(0, np.uint32), *(keys for keys, _ in self.plain.tables)]))
        names = self.texts(keys)
        self._key = {names[i]: node for i, node in enumerate(keys.tolist())}

    @property
    def root(self) -> int:
        return int(self.plain.root)

    def items(self, node: int) -> PickleNodes:
        """Return the items of a list; none for any other type."""
        if self.plain.kind[node] != plain.LIST:
            return np.empty(0, np.uint32)
        self.budget.charge(NODE_BYTES * self.plain.count(node))
        return self.plain.items(node)

    def charge_rows(self, count: int) -> None:
        """Charge rows of a recording, before their columns are read."""
        self.budget.charge(ROW_BYTES * count)

    def is_list(self, node: int) -> bool:
        return bool(self.plain.kind[node] == plain.LIST)

    def get(self, node: int, key: str) -> int:
        """Return one value of one dict; the node of None where the key is missing."""
        return int(self.column(np.array([node], np.uint32), key)[0])

    def column(self, dicts: PickleNodes, key: str) -> PickleNodes:
        """Return the value of a key in each of the dicts; the node of None where it is missing."""
        found = np.full(len(dicts), NONE_NODE, dtype=np.uint32)
        key_node = self._key.get(key)
        if key_node is None or not len(dicts):
            return found
        value = self.plain.value[dicts]
        table = np.where((self.plain.kind[dicts] == plain.RECORD) & (value >= 0), value >> ROW_BITS, -1)
        order = np.argsort(table, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(table[order]) != 0])
        for number, start, end in zip(table[order[starts]].tolist(), starts, [*starts[1:], len(order)], strict=True):
            if number < 0:
                continue
            keys, columns = self.plain.tables[number]
            if len(at := np.flatnonzero(keys == key_node)):
                rows = order[start:end]
                found[rows] = columns[at[-1]][value[rows] & ((1 << ROW_BITS) - 1)]
        return found

    def integers(self, nodes: PickleNodes, missing: int = -1) -> I64:
        """Return integers. Numbers of 64 bits, such as high addresses, wrap to negative; longer ones are missing."""
        kind, value = self.plain.kind[nodes], self.plain.value[nodes]
        return np.where((kind == plain.INT) | (kind == plain.BOOL), value, missing)

    def sizes(self, nodes: PickleNodes) -> I64:
        """Return sizes in bytes, 0 where they are missing or impossible."""
        found = self.integers(nodes, 0)
        return np.where(is_plausible(found), found, 0).clip(0)

    def is_integer(self, nodes: PickleNodes) -> npt.NDArray[np.bool_]:
        return np.asarray(self.plain.kind[nodes] == plain.INT)

    def texts(self, nodes: PickleNodes) -> Text:
        """Return texts, empty for any other type."""
        kind, value = self.plain.kind[nodes], self.plain.value[nodes]
        used, codes = number_values(np.where(kind == plain.TEXT, value, -1))
        has_none = bool(len(used) and used[0] < 0)
        used = used[1:] if has_none else used
        self.budget.charge(int(self.plain.text_length[used].sum()))
        blob, offsets = gather(self.data, self.plain.text_start[used], self.plain.text_length[used])
        return Text((codes - has_none).astype(np.int32), Strings(blob, offsets))

    def text(self, node: int) -> str:
        return self.texts(np.array([node], np.uint32))[0]

    def stacks(self, nodes: PickleNodes) -> tuple[I64, I64, PickleNodes]:
        """Return (distinct list of each row or -1, lengths of these lists, their nodes concatenated)."""
        kind, value = self.plain.kind[nodes], self.plain.value[nodes]
        lists, number = number_values(np.where(kind == plain.LIST, value, -1))
        has_none = bool(len(lists) and lists[0] < 0)
        chunks = lists[int(has_none) :].astype(np.int32)
        self.budget.charge(FRAME_BYTES * self.plain.flat_count(chunks))
        offsets, nodes_of_lists = self.plain.flat(chunks)
        return number.astype(np.int64) - has_none, np.diff(offsets), nodes_of_lists

    def pairs(self, node: int) -> Iterator[tuple[str, Any]]:
        """Yield the keys and Python values of a small dict."""
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


def _pickle_json(data: bytes | memoryview, budget: ReadBudget) -> bytes:
    """Convert JSON, which PyTorch's viewer accepts too, to a pickle, so that one parser reads both."""
    text = bytes(data)
    budget.charge(sum(nbytes * text.count(mark) for mark, nbytes in JSON_BYTES.items()))
    try:
        return pickle.dumps(json.loads(text), protocol=4)
    except (ValueError, RecursionError) as error:
        problem = "neither a pickle of protocol 2 to 5 nor JSON"
        raise InputError("Not a PyTorch memory snapshot", budget.path, f"{problem} ({error})") from error
