"""Source of an operation, as XLA prints it: `op_name="jit(step)/dot" source_file="model.py" source_line=12`."""

from __future__ import annotations

import re

OP_NAME = re.compile(r'op_name="([^"\n]{0,4000})')  # also matches a name that is cut off
OP_TYPE = re.compile(r'op_type="([^"\n]{0,200})"')
SOURCE = re.compile(r'source_file="([^"\n]{1,1000})"\s+source_line=(\d{1,9})')


def op_name(text: str) -> str:
    """Return the model path, empty where the text has none."""
    found = OP_NAME.search(text)
    return found[1] if found else ""


def op_type(text: str) -> str:
    """Return the framework's operation type, empty where the text has none."""
    found = OP_TYPE.search(text)
    return found[1] if found else ""


def source(text: str) -> tuple[str, int] | None:
    """Return (file, line), None where the text has none."""
    found = SOURCE.search(text)
    return (found[1], min(int(found[2]), 2**31 - 1)) if found else None
