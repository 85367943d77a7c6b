"""Memory files of PyTorch's profiler: memory timelines, and the [memory] events of traces."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.gzip_file import decompress
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.torch_profiler.category_sums import read_category_sums
from tb_memplugin.readers.torch_profiler.memory_events import read_memory_events
from tb_memplugin.readers.torch_profiler.tensor_events import read_tensor_events

HEAD_BYTES = 1 << 16  # enough to identify the format
LISTS, TRACE = re.compile(rb"\s*\[\s*\["), b'"traceEvents"'


def is_profiler_json(data: bytes | memoryview) -> bool:
    """Return True where JSON begins like a timeline or a trace, which no snapshot does."""
    head = bytes(data[:HEAD_BYTES])
    return bool(LISTS.match(head)) or TRACE in head


def open_torch_profiler(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the single part of a timeline or trace, which parses the file when it is read."""
    read = partial(_read, data, path, run=run, host=host)
    return [FilePart(host, RecordingKind.TORCH_TIMELINE, path, len(data), read)]


def _read(data: bytes | memoryview, path: str, *, run: str, host: str) -> list[Recording]:
    """Read a trace, a JSON object, or a timeline of export_memory_timeline, JSON lists. Raises InputError."""
    raw = decompress(data, ReadBudget(data, path))
    origin = run, host, path
    if bytes(raw[:HEAD_BYTES]).lstrip()[:1] == b"{":
        return read_memory_events(raw, origin)
    content = _parse_json(raw, path)
    match content:
        case [[*times], [[*_], *_] as sizes] if len(times) == len(sizes):
            return read_category_sums(_numbers(times, path, 1), _numbers(sizes, path, 2), origin)
    rows = _numbers(content, path, 2)
    if rows.shape[1] != 4:
        raise _not_a_timeline(
            path, f"its rows have {rows.shape[1]} numbers instead of time, action, bytes and category"
        )
    return read_tensor_events(rows, origin)


def _parse_json(raw: bytes | memoryview, path: str) -> Any:
    try:
        return json.loads(bytes(raw))
    except (ValueError, RecursionError) as error:
        raise _not_a_timeline(path, f"it is not JSON ({error})") from error


def _numbers(value: Any, path: str, dimensions: int) -> Any:
    """Convert to 64-bit integers, which nanosecond times need: a float has 53 bits."""
    try:
        numbers = np.array(value, dtype=np.int64)
    except (ValueError, TypeError, OverflowError) as error:
        raise _not_a_timeline(path, "it contains more than lists of numbers") from error
    if numbers.ndim != dimensions:
        raise _not_a_timeline(path, "its lists differ in length")
    return numbers


def _not_a_timeline(path: str, reason: str) -> InputError:
    return InputError(
        "Not a memory timeline of torch.profiler", path, f"{reason}; create one with export_memory_timeline"
    )
