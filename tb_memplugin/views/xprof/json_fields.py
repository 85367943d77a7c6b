"""Pieces of XProf's JSON that several parts of an answer use."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

MIB = 2**20

Json = dict[str, Any]


def nonempty_fields(fields: Json) -> Json:
    """Return the fields without zeros, empty texts and empty lists, which XProf leaves out."""
    return {name: value for name, value in fields.items() if value}


def source_info(recording: Recording, leaf: int) -> Json:
    """Return the source line and the stack of a leaf frame; empty without a stack."""
    frames = recording.stacks.frames(leaf)
    if not frames:
        return {}
    _, file, line = frames[0]
    stack = "\n".join(f"{file}:{line}" for _, file, line in frames)
    return nonempty_fields({"fileName": file, "lineNumber": line, "stackFrame": stack})


def split_name(name: str) -> tuple[str, list[str]]:
    """Split a buffer's name into instruction and shape index: `fusion{1,0}` is fusion, 1 and 0."""
    if not name.endswith("}"):
        return name, []
    instruction, _, index = name[:-1].rpartition("{")
    return instruction, index.split(",")


def id_text(number: int) -> str:
    """Format a 64-bit id, which XProf writes as a string; zero is empty."""
    return str(number) if number else ""


def column_texts(column: Text, which: I64 | None = None) -> list[str]:
    """Return the texts of a column, or of some rows of it; each distinct text is decoded once."""
    codes = column.codes if which is None else column.codes[which]
    used, index = np.unique(codes, return_inverse=True)
    texts = [column.strings[code] if code >= 0 else "" for code in used.tolist()]
    return [texts[i] for i in index.tolist()]
