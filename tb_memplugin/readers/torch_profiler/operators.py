"""Operators and user annotations of a trace, which name its allocations and steps."""

from __future__ import annotations

import json
import re

import numpy as np

from tb_memplugin.model.arrays import F64, I64
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common.limits import MAX_TIME_US
from tb_memplugin.readers.common.torch_steps import annotation_kind

# The start of an event. The profiler always writes the keys in this order.
HEAD = re.compile(
    rb'"cat":\s*"(cpu_op|user_annotation)",\s*"name":\s*("(?:[^"\\]|\\.)*"),\s*"pid":\s*-?\d+,\s*'
    rb'"tid":\s*(-?\d{1,18}),\s*"ts":\s*(\d+(?:\.\d+)?),\s*"dur":\s*(\d+(?:\.\d+)?)'
)
OPERATOR = b"cpu_op"
BACKWARD_PREFIX = "autograd::engine::evaluate_function: "  # prefix of operators of the backward pass
NS_PER_US = 1000


class EventHeads:
    """Operators and annotations of a trace, ordered by start; times in microseconds."""

    def __init__(self, raw: bytes | memoryview) -> None:
        found = [head for head in HEAD.findall(raw) if max(float(head[3]), float(head[4])) < MAX_TIME_US]
        start = np.array([float(start_us) for _, _, _, start_us, _ in found])
        order = np.argsort(start, kind="stable")
        self.start: F64 = start[order]
        self.end: F64 = self.start + np.array([float(length) for *_, length in found])[order]
        self.thread: I64 = np.array([int(thread) for _, _, thread, _, _ in found], dtype=np.int64)[order]
        self.operator = np.array([category == OPERATOR for category, *_ in found], dtype=bool)[order]
        self.name = Text.of([_text(name).removeprefix(BACKWARD_PREFIX) for _, name, *_ in found]).take(order)

    def enclosing_operators(self, time: F64, thread: I64) -> Text:
        """Return the outermost operator around each time on its thread; empty where there is none."""
        found = np.full(len(time), -1)
        for number in np.unique(thread).tolist():
            operators, on_thread = np.flatnonzero(self.operator & (self.thread == number)), thread == number
            if not len(operators):
                continue
            reach = np.maximum.accumulate(self.end[operators])
            outer = operators[np.r_[True, self.start[operators][1:] >= reach[:-1]]]
            at = outer[np.maximum(np.searchsorted(self.start[outer], time[on_thread], side="right") - 1, 0)]
            inside = (self.start[at] <= time[on_thread]) & (time[on_thread] <= self.end[at])
            found[on_thread] = np.where(inside, at, -1)
        codes = np.r_[self.name.codes, np.int32(-1)]
        return Text(codes[found].astype(np.int32), self.name.strings)

    def annotations(self) -> NamedSpans | None:
        """Return the user annotations, in nanoseconds of the trace's clock; None where there are none."""
        which = np.flatnonzero(~self.operator)
        if not len(which):
            return None
        name = self.name.take(which)
        kinds = [int(annotation_kind(name[i])) for i in range(len(which))]
        start, end = (np.round(time[which] * NS_PER_US).astype(np.int64) for time in (self.start, self.end))
        return NamedSpans(name, np.array(kinds, np.uint8), start, end)


def _text(quoted: bytes) -> str:
    try:
        # JSON may contain half of a surrogate pair, which UTF-8 cannot encode.
        return str(json.loads(quoted)).encode(errors="replace").decode()
    except ValueError:
        return quoted.decode(errors="replace").strip('"')
