"""Memory files of PyTorch's profiler: memory timelines, and the [memory] events of traces."""

import re
from functools import partial

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.torch.json_numbers import NotNumbers, read_lists
from tb_memplugin.readers.common.budget import ReadBudget, decompress
from tb_memplugin.readers.common.part import FilePart, Origin
from tb_memplugin.readers.torch_profiler.exported_timeline import read_category_sums, read_tensor_events
from tb_memplugin.readers.torch_profiler.trace import read_memory_events

VALUE_BYTES = 32  # of a number, or a list, while they are read
ROW_BYTES = 512  # of an event while its recording is made; measured: 300
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
    budget = ReadBudget(data, path)
    raw = decompress(data, budget)
    origin = Origin(run, host, path)
    if bytes(raw[:HEAD_BYTES]).lstrip()[:1] == b"{":
        return read_memory_events(raw, origin, budget)
    try:
        values, depth, count = read_lists(raw, budget.left // VALUE_BYTES)
    except NotNumbers as error:
        raise _not_a_timeline(path, "it contains more than lists of numbers") from error
    except MemoryError as error:
        raise budget.exceeded(budget.limit) from error
    budget.charge(VALUE_BYTES * (len(values) + len(count)))
    if len(depth) and depth[0] == 2 and (depth == 3).any():
        times = int(count[0])
        sizes = _table(values[times:], count[depth == 3] - times, path)
        if len(sizes) != times:
            raise _not_a_timeline(path, "its lists differ in length")
        return read_category_sums(values[:times], sizes, origin, budget)
    rows = _table(values, count[depth == 2], path)
    if rows.shape[1] != 4:
        reason = f"its rows have {rows.shape[1]} numbers instead of time, action, bytes and category"
        raise _not_a_timeline(path, reason)
    budget.charge(ROW_BYTES * len(rows))
    return read_tensor_events(rows, origin)


def _table(values: I64, count: I64, path: str) -> I64:
    """Return lists of equal length as the rows of a table. `count`: the numbers up to the end of each list."""
    if not len(count) or count[-1] != len(values) or (np.diff(count, prepend=0) != count[0]).any():
        raise _not_a_timeline(path, "its lists differ in length")
    return values.reshape(len(count), -1)


def _not_a_timeline(path: str, reason: str) -> InputError:
    remedy = f"{reason}; create one with export_memory_timeline"
    return InputError("Not a memory timeline of torch.profiler", path, remedy)
