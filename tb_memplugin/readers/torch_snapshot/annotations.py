"""Named intervals of a snapshot: steps, user annotations, and out-of-memory events."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Text
from tb_memplugin.readers.torch_profiler.trace import annotation_kind
from tb_memplugin.readers.torch_snapshot.pickle_values import PickleNodes, PickleValues
from tb_memplugin.readers.torch_snapshot.trace import Trace, TraceAction, read_times
from tb_memplugin.sizes import bytes_text


def read_spans(values: PickleValues, annotations: PickleNodes, device: int, trace: Trace) -> NamedSpans | None:
    """Read the spans on the trace's clock, which begins at its first event; None where the trace has no times.

    A start without its end lasts until the trace ends; an end without its start begins with the trace.
    """
    has_time = trace.time_us >= 0
    if not has_time.any():
        return None
    first, last = int(trace.time_us[has_time][0]), int(trace.time_us.max())
    names, kinds, starts, ends = _annotation_spans(values, annotations, device, first, last)
    for event in np.flatnonzero(trace.action == TraceAction.OOM).tolist():
        free = int(trace.device_free[event])
        left = f", {bytes_text(free)} free" if free >= 0 else ""
        names.append(f"out of memory: {bytes_text(max(int(trace.size[event]), 0))} requested{left}")
        kinds.append(SpanKind.OUT_OF_MEMORY)
        starts.append(int(trace.time_us[event]))
        ends.append(int(trace.time_us[event]) + 1)
    order = np.argsort(np.array(starts, dtype=np.int64), kind="stable")
    start_ns, end_ns = _nanoseconds(starts, first)[order], _nanoseconds(ends, first)[order]
    return NamedSpans(Text.of(names).take(order), np.array(kinds, np.uint8)[order], start_ns, end_ns)


def _nanoseconds(times_us: list[int], first: int) -> I64:
    return (np.array(times_us, dtype=np.int64) - first) * 1000


def _annotation_spans(
    values: PickleValues, annotations: PickleNodes, device: int, first: int, last: int
) -> tuple[list[str], list[int], list[int], list[int]]:
    """Pair starts and ends: an end closes the latest open start of its name. A plain loop, as annotations are few."""
    on_device = annotations[values.integers(values.column(annotations, "device"), device) == device]
    values.charge_rows(len(on_device))
    name, stage = values.texts(values.column(on_device, "name")), values.texts(values.column(on_device, "stage"))
    time, code, begins = read_times(values, on_device).tolist(), name.codes.tolist(), stage.isin(["START"]).tolist()
    open_starts: dict[int, list[int]] = {}
    found: list[tuple[int, int, int]] = []
    for row in np.argsort(np.array(time), kind="stable").tolist():
        if begins[row]:
            open_starts.setdefault(code[row], []).append(time[row])
        else:
            starts = open_starts.get(code[row])
            found.append((code[row], starts.pop() if starts else first, time[row]))
    found += [(label, start, last) for label, starts in open_starts.items() for start in starts]
    labels = [*name.strings, ""]  # one object for each, however many spans have it; -1 takes the last
    kinds = [int(annotation_kind(label)) for label in labels]
    names, name_kinds = [labels[label] for label, _, _ in found], [kinds[label] for label, _, _ in found]
    return names, name_kinds, [s for _, s, _ in found], [e for _, _, e in found]
