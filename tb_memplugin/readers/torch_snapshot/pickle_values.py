"""Values of a pickle of plain data, read as columns: one key of many dicts at a time."""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.numbering import number_values
from tb_memplugin.native.text.strings import gather
from tb_memplugin.native.torch import plain_pickle
from tb_memplugin.native.torch import plain_values as plain
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.limits import is_plausible

PickleNodes = npt.NDArray[np.uint32]
NODE_BYTES = 16  # of an item of a list while the list is read
FRAME_BYTES = 128  # of a frame while the tree of stacks is made
ROW_BYTES = 512  # of an event or a block while its columns are read; measured: 300
# Memory of the Python objects that json.loads makes, with their pickle, by the character that begins them: an empty
# dict, or the first item of one, takes 300 bytes.
JSON_BYTES = {b"{": 320, b"[": 160, b",": 48, b":": 48, b'"': 40}
NONE_NODE = np.uint32(0)  # the node of None, also used for missing keys


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
        keys = np.unique(self.plain.keys())
        names = self.texts(keys)
        self._key = {names[i]: node for i, node in enumerate(keys.tolist())}

    @property
    def root(self) -> int:
        return int(self.plain.root)

    def items(self, node: int) -> PickleNodes:
        """Return the items of a list; none for any other type."""
        self.budget.charge(NODE_BYTES * self.plain.count(node))
        return self.plain.items(node)

    def charge_rows(self, count: int) -> None:
        """Charge rows of a recording, before their columns are read."""
        self.budget.charge(ROW_BYTES * count)

    def is_list(self, node: int) -> bool:
        return plain.kinds(node) == plain.LIST

    def get(self, node: int, key: str) -> int:
        """Return one value of one dict; the node of None where the key is missing."""
        return int(self.column(np.array([node], np.uint32), key)[0])

    def column(self, dicts: PickleNodes, key: str) -> PickleNodes:
        """Return the value of a key in each of the dicts; the node of None where it is missing."""
        key_node = self._key.get(key)
        if key_node is None:
            return np.full(len(dicts), NONE_NODE, dtype=np.uint32)
        return self.plain.column(dicts, key_node)

    def integers(self, nodes: PickleNodes, missing: int = -1) -> I64:
        """Return integers. Numbers of 64 bits, such as high addresses, wrap to negative; longer ones are missing."""
        return self.plain.integers(nodes, missing)

    def sizes(self, nodes: PickleNodes) -> I64:
        """Return sizes in bytes, 0 where they are missing or impossible."""
        found = self.integers(nodes, 0)
        return np.where(is_plausible(found), found, 0).clip(0)

    def is_integer(self, nodes: PickleNodes) -> npt.NDArray[np.bool_]:
        kind = plain.kinds(nodes)
        return np.asarray((kind == plain.INT) | ((kind == plain.LONG) & (nodes != plain.HUGE)))

    def texts(self, nodes: PickleNodes) -> Text:
        """Return texts, empty for any other type."""
        used, codes = number_values(self.plain.text_numbers(nodes))
        has_none = bool(len(used) and used[0] < 0)
        start, length = self.plain.text_spans(used[int(has_none) :])
        self.budget.charge(int(length.sum()))
        blob, offsets = gather(self.data, start, length)
        return Text((codes - has_none).astype(np.int32), Strings(blob, offsets))

    def text(self, node: int) -> str:
        return self.texts(np.array([node], np.uint32))[0]

    def stacks(self, nodes: PickleNodes) -> tuple[I64, I64, PickleNodes]:
        """Return (distinct list of each row or -1, lengths of these lists, their nodes concatenated)."""
        lists, number = number_values(self.plain.list_numbers(nodes))
        has_none = bool(len(lists) and lists[0] < 0)
        chunks = lists[int(has_none) :]
        self.budget.charge(FRAME_BYTES * self.plain.flat_count(chunks))
        return number - has_none, *self.plain.flat(chunks)

    def pairs(self, node: int) -> Iterator[tuple[str, Any]]:
        """Yield the keys and Python values of a small dict."""
        keys, found = self.plain.pairs(node)
        for key, value in zip(keys.tolist(), found.tolist(), strict=True):
            yield self.text(key), self._plain(value)

    def _plain(self, node: int) -> Any:
        kind = plain.kinds(node)
        if kind == plain.TEXT:
            return self.text(node)
        if kind == plain.FLOAT:
            return float(np.int64(self.plain.float_of(node)).view(np.float64))
        number = np.array([node], np.uint32)
        if not self.is_integer(number)[0] and kind != plain.BOOL:
            return None
        found = int(self.integers(number)[0])
        return bool(found) if kind == plain.BOOL else found


def _pickle_json(data: bytes | memoryview, budget: ReadBudget) -> bytes:
    """Convert JSON, which PyTorch's viewer accepts too, to a pickle, so that one parser reads both."""
    text = bytes(data)
    budget.charge(sum(nbytes * text.count(mark) for mark, nbytes in JSON_BYTES.items()))
    try:
        return pickle.dumps(json.loads(text), protocol=4)
    except (ValueError, RecursionError) as error:
        problem = "neither a pickle of protocol 2 to 5 nor JSON"
        raise InputError("Not a PyTorch memory snapshot", budget.path, f"{problem} ({error})") from error
