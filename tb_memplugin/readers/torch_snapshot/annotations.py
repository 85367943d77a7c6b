"""Named intervals of a snapshot: steps, what the user marked, and the moments at which memory ran out."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common.torch_steps import annotation_kind
from tb_memplugin.readers.torch_snapshot.pickle_columns import Nodes, Values
from tb_memplugin.readers.torch_snapshot.trace import Action, Trace, read_times
from tb_memplugin.sizes import bytes_text


def read_spans(values: Values, marks: Nodes, device: int, trace: Trace) -> NamedSpans | None:
    """On the trace's clock. A start without its end lasts to the end of the trace, and the other way round."""
    told = trace.time_us >= 0
    if not told.any():
        return None
    first, last = int(trace.time_us[told][0]), int(trace.time_us.max())
    names, kinds, starts, ends = _marks(values, marks, device, first, last)
    for event in np.flatnonzero(trace.action == Action.OOM).tolist():
        free = int(trace.device_free[event])
        left = f", {bytes_text(free)} free" if free >= 0 else ""
        names.append(f"out of memory: {bytes_text(max(int(trace.size[event]), 0))} asked for{left}")
        kinds.append(SpanKind.OUT_OF_MEMORY)
        starts.append(int(trace.time_us[event]))
        ends.append(int(trace.time_us[event]) + 1)
    order = np.argsort(np.array(starts, dtype=np.int64), kind="stable")
    start_ns, end_ns = _nanoseconds(starts, first)[order], _nanoseconds(ends, first)[order]
    return NamedSpans(Text.of(names).take(order), np.array(kinds, np.uint8)[order], start_ns, end_ns)


def _nanoseconds(times_us: list[int], first: int) -> I64:
    return (np.array(times_us, dtype=np.int64) - first) * 1000


def _marks(
    values: Values, marks: Nodes, device: int, first: int, last: int
) -> tuple[list[str], list[int], list[int], list[int]]:
    """Starts and ends of one name nest: an end belongs to the latest start that is open. There are few marks."""
    here = marks[values.integers(values.column(marks, "device"), device) == device]
    name, stage = values.texts(values.column(here, "name")), values.texts(values.column(here, "stage"))
    time = read_times(values, here).tolist()
    open_: dict[str, list[int]] = {}
    found: list[tuple[str, int, int]] = []
    for row in np.argsort(np.array(time), kind="stable").tolist():
        if stage[row] == "START":
            open_.setdefault(name[row], []).append(time[row])
        else:
            begun = open_.get(name[row])
            found.append((name[row], begun.pop() if begun else first, time[row]))
    found += [(label, start, last) for label, starts in open_.items() for start in starts]
    kinds = [int(annotation_kind(label)) for label, _, _ in found]
    return [label for label, _, _ in found], kinds, [s for _, s, _ in found], [e for _, _, e in found]
