"""What the profiler of PyTorch writes of memory: its memory timeline, and the [memory] events of its traces."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.gzip_file import decompress
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.torch_profiler.category_sums import read_curves
from tb_memplugin.readers.torch_profiler.memory_events import read_memory_events
from tb_memplugin.readers.torch_profiler.tensor_events import read_versions

MOST_BYTES = 8 << 30  # of a file once decompress
LOOKED_AT = 1 << 16
LISTS, TRACE = re.compile(rb"\s*\[\s*\["), b'"traceEvents"'


def is_of_profiler(data: bytes | memoryview) -> bool:
    """Whether JSON begins as a timeline or a trace does, and a snapshot never."""
    head = bytes(data[:LOOKED_AT])
    return bool(LISTS.match(head)) or TRACE in head


def open_torch_profiler(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    read = partial(_read, data, path, run=run, host=host)
    return [FilePart(host, RecordingKind.TORCH_TIMELINE, path, len(data), read)]


def _read(data: bytes | memoryview, path: str, *, run: str, host: str) -> list[Recording]:
    """By what is in it: a trace is an object, export_memory_timeline writes lists. InputError naming the file."""
    raw = decompress(data, path, MOST_BYTES)
    where = run, host, path
    if bytes(raw[:LOOKED_AT]).lstrip()[:1] == b"{":
        return read_memory_events(raw, where)
    content = _parsed(raw, path)
    match content:
        case [[*times], [[*_], *_] as sizes] if len(times) == len(sizes):
            return read_curves(_numbers(times, path, 1), _numbers(sizes, path, 2), where)
    rows = _numbers(content, path, 2)
    if rows.shape[1] != 4:
        raise _unknown(path, f"its rows have {rows.shape[1]} numbers, not time, action, bytes and category")
    return read_versions(rows, where)


def _parsed(raw: bytes | memoryview, path: str) -> Any:
    try:
        return json.loads(bytes(raw))
    except (ValueError, RecursionError) as error:
        raise _unknown(path, f"it is no JSON: {error}") from error


def _numbers(value: Any, path: str, dimensions: int) -> Any:
    """Whole numbers, as times in nanoseconds need: a float holds 53 bits of them."""
    try:
        numbers = np.array(value, dtype=np.int64)
    except (ValueError, TypeError, OverflowError) as error:
        raise _unknown(path, "it holds more than lists of numbers") from error
    if numbers.ndim != dimensions:
        raise _unknown(path, "its lists are not of one length")
    return numbers


def _unknown(path: str, why: str) -> InputError:
    return InputError("Not a memory timeline of torch.profiler", path, f"{why}; export_memory_timeline writes one")
