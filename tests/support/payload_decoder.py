"""A decoder of the page's tables, written from the description of the wire format."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

TYPES = {"u8": "u1", "i32": "<i4", "u32": "<u4", "f64": "<f8"}


def decode(answer: bytes) -> tuple[dict[str, Any], dict[str, dict[str, list[Any]]]]:
    """Return (meta, {table: {column: values}}), with text columns as str."""
    assert answer[:4] == b"TBM1"
    size = int.from_bytes(answer[4:8], "little")
    assert (8 + size) % 8 == 0
    header, body = json.loads(answer[8 : 8 + size]), answer[8 + size :]
    tables: dict[str, dict[str, list[Any]]] = {}
    for name, table in header["tables"].items():
        tables[name] = {}
        for column_name, column in table["columns"].items():
            assert column["offset"] % 8 == 0
            values = np.frombuffer(body, TYPES[column["type"]], table["length"], column["offset"]).tolist()
            if "dictionary" in column:
                words = dictionary(header["dictionaries"][column["dictionary"]], body)
                values = [words[v] if v < len(words) else "" for v in values]
            tables[name][column_name] = values
    return header["meta"], tables


def dictionary(described: dict[str, int], body: bytes) -> list[str]:
    offsets = np.frombuffer(body, "<u4", described["length"] + 1, described["offsets"]).tolist()
    blob = body[described["bytes"] : described["bytes"] + described["size"]]
    return [blob[a:b].decode("utf-8", "replace") for a, b in pairwise(offsets)]
