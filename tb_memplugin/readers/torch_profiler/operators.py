"""Operators and user annotations of a trace, which name its allocations and steps."""

from __future__ import annotations

import json

import numpy as np

from tb_memplugin.model.arrays import F64, I64, U8
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.source_tables import NamedSpans
from tb_memplugin.model.text import Text
from tb_memplugin.native.text.strings import intern
from tb_memplugin.readers.common.limits import MAX_TIME_US
from tb_memplugin.readers.common.torch_steps import annotation_kind

BACKWARD_PREFIX = "autograd::engine::evaluate_function: "  # prefix of operators of the backward pass
NS_PER_US = 1000
OperatorColumns = tuple[F64, F64, I64, U8, I64, I64]  # of native/torch/trace_events.pyx: scan


class EventHeads:
    """Operators and annotations of a trace, ordered by start; times in microseconds."""

    def __init__(self, raw: bytes | memoryview, columns: OperatorColumns) -> None:
        """Sort the operators that `scan` found in `raw`."""
        start, duration, thread, is_operator, name, name_length = columns
        kept = np.flatnonzero((start < MAX_TIME_US) & (duration < MAX_TIME_US))
        order = kept[np.argsort(start[kept], kind="stable")]
        self.start: F64 = start[order]
        self.end: F64 = self.start + duration[order]
        self.thread: I64 = thread[order]
        self.operator = is_operator[order] == 1
        self.name = _names(raw, name[order], name_length[order])

    def enclosing_operators(self, time: F64, thread: I64) -> Text:
        """Return the outermost operator around each time on its thread; empty where there is none."""
        operators = np.flatnonzero(self.operator)
        _, row = np.unique(np.r_[self.thread[operators], thread], return_inverse=True)
        _, rank = np.unique(np.r_[self.start[operators], self.end[operators], time], return_inverse=True)
        # One axis for all threads: each has a stretch of its own, so that the work does not grow with their number.
        n, stretch = len(operators), len(rank)
        start, end = row[:n] * stretch + rank[:n], row[:n] * stretch + rank[n : 2 * n]
        at = row[n:] * stretch + rank[2 * n :]
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        outer = np.flatnonzero(np.r_[True, start[1:] >= np.maximum.accumulate(end)[:-1]][:n])
        before = np.searchsorted(start[outer], at, side="right") - 1  # -1 takes the row that is appended
        inside = np.r_[end[outer], -1][before] >= at
        codes = self.name.codes[operators][order][outer]
        return Text(np.where(inside, np.r_[codes, -1][before], -1).astype(np.int32), self.name.strings)

    def annotations(self) -> NamedSpans | None:
        """Return the user annotations, in nanoseconds of the trace's clock; None where there are none."""
        which = np.flatnonzero(~self.operator)
        if not len(which):
            return None
        name = self.name.take(which)
        kinds = name.map(annotation_kind, SpanKind.ANNOTATION, np.uint8)
        start, end = (np.round(time[which] * NS_PER_US).astype(np.int64) for time in (self.start, self.end))
        return NamedSpans(name, kinds, start, end)


def _names(raw: bytes | memoryview, start: I64, length: I64) -> Text:
    """Read the names of operators, each distinct one once."""
    codes, first = intern(raw, start, length)
    spans = zip(start[first].tolist(), length[first].tolist(), strict=True)
    names = [_text(bytes(raw[at : at + size])).removeprefix(BACKWARD_PREFIX) for at, size in spans]
    return Text.of(names).take(codes)


def _text(quoted: bytes) -> str:
    try:
        # JSON may contain half of a surrogate pair, which UTF-8 cannot encode.
        return str(json.loads(quoted)).encode(errors="replace").decode()
    except ValueError:
        return quoted.decode(errors="replace").strip('"')
