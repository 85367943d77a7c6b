"""The call graph of device profiles: which functions allocated the memory that is live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_memplugin.analysis.call_graph.graph import CallGraph, Granularity, Refine, build_call_graph
from tb_memplugin.analysis.call_graph.samples import Samples, diff_samples, live_samples
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.endpoint import InReport, endpoint
from tb_memplugin.views.endpoints.inputs import (
    FILE,
    RECORDING,
    Choice,
    FileOf,
    Flag,
    Integer,
    OptionalRecording,
    Text,
)
from tb_memplugin.views.page.device_profile import has_call_graph
from tb_memplugin.views.shared.payload import compact

MAX_LISTED = 5000  # functions in the table
MAX_DRAWN = 300  # functions in one picture
DRAWN = 60
FIGURES = ("line", "flat", "cum", "flat_allocations", "cum_allocations")


@endpoint(
    "callgraph",
    RECORDING,
    FILE,
    Choice("by", Granularity),
    Text("focus", ""),
    Text("ignore", ""),
    Text("hide", ""),
    Flag("fold", True),
    Flag("whole", False),
    OptionalRecording("base"),
    FileOf("base", optional=True),
    Integer("most", 1, MAX_DRAWN, default=DRAWN),
    report=InReport(has_call_graph),
)
def call_graph_of_device(
    recording: Recording,
    file: Sequence[Recording],
    by: Granularity,
    focus: str,
    ignore: str,
    hide: str,
    fold: bool,
    whole: bool,
    base: Recording | None,
    base_file: Sequence[Recording] | None,
    most: int,
) -> dict[str, Any]:
    """Return the call graph of one device, or of all devices of its file (`whole`); of the change since `base`."""
    devices = [other for other in file if has_call_graph(other)] if whole else [recording]
    before = None
    if base is not None:
        before = [other for other in base_file or () if has_call_graph(other)] if whole else [base]
    return call_graph(devices, before, by, Refine(focus=focus, ignore=ignore, hide=hide, fold=fold), most)


def call_graph(
    recordings: Sequence[Recording], base: Sequence[Recording] | None, by: Granularity, refine: Refine, most: int
) -> dict[str, Any]:
    """Of these recordings together, or of their change since `base`. InputError where `refine` makes no sense."""
    samples: Samples = live_samples(recordings)
    if base is not None:
        samples = diff_samples(live_samples(base), samples)
    return _encoded(build_call_graph(samples, by, refine, most), by)


def _encoded(found: CallGraph, by: Granularity) -> dict[str, Any]:
    nodes, calls = found.nodes, found.calls
    listed = slice(0, MAX_LISTED)  # those of the picture come first: they are the largest
    function, file = (compact(text.take(np.arange(len(text))[listed])) for text in (nodes.function, nodes.file))
    left = nodes.cum[MAX_LISTED:]
    return {
        "by": by.value,
        "total": found.total,
        "total_allocations": found.total_allocations,
        "shown": found.shown,
        "unplaced": found.unplaced,
        "nodes": {
            "function": [function[i] for i in range(len(function))],
            "file": [file[i] for i in range(len(file))],
            **{name: getattr(nodes, name)[listed].tolist() for name in FIGURES},
            "drawn": found.drawn[listed].tolist(),
        },
        "nodes_total": len(nodes.flat),
        "not_drawn": {
            "nodes": int((~found.drawn).sum()),
            "largest": int(np.abs(nodes.cum[~found.drawn]).max(initial=0)),
        },
        "not_listed": {"nodes": len(left), "largest": int(np.abs(left).max(initial=0))},
        "calls": {name: getattr(calls, name).tolist() for name in calls._fields},
    }
