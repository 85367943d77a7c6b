"""The call graph of device profiles: which functions allocated the memory that is live."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.call_graph import Granularity, Refine, build_call_graph, diff_samples, live_samples
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import (
    FILE,
    RECORDING,
    BadParameter,
    Choice,
    FileOf,
    Flag,
    FreeText,
    Integer,
    RecordingOf,
)
from tb_memplugin.questions.kinds.device_profile import OF_DEVICE_PROFILES
from tb_memplugin.questions.records import record

MAX_LISTED = 5000  # functions in the table
MAX_DRAWN = 300  # functions in one picture
DRAWN = 60
FIGURES = ("line", "flat", "cum", "flat_allocations", "cum_allocations")  # of functions


class CallNodesJson(TypedDict):
    """Functions as columns, the largest `cum` first. Of a change since another profile, figures may be negative."""

    function: list[str]
    file: list[str]
    line: list[int]
    """0 where lines do not distinguish functions."""
    flat: list[int]
    cum: list[int]
    flat_allocations: list[int]
    cum_allocations: list[int]
    drawn: list[bool]
    """True if the picture shows the function."""


class LeftOutJson(TypedDict):
    """Functions that are left out: how many, and the bytes of the largest."""

    nodes: int
    largest: int


class CallsJson(TypedDict):
    """Calls between functions in the picture, as columns; `residual` ones sometimes pass through other functions."""

    caller: list[int]
    callee: list[int]
    bytes: list[int]
    allocations: list[int]
    residual: list[bool]


class CallGraphJson(TypedDict):
    """A call graph in pprof's terms."""

    by: Granularity
    total: int
    """Base of shares: the total, or for a change, the total before."""
    total_allocations: int
    shown: int
    """Bytes that focus and ignore leave."""
    unplaced: int
    """Bytes of `shown` without a frame left."""
    nodes: CallNodesJson
    nodes_total: int
    not_drawn: LeftOutJson
    not_listed: LeftOutJson
    calls: CallsJson


@endpoint(
    "callgraph",
    RECORDING,
    FILE,
    Choice("by", Granularity),
    FreeText("focus", default=""),
    FreeText("ignore", default=""),
    FreeText("hide", default=""),
    Flag("fold", default=True),
    Flag("whole", default=False),
    RecordingOf("base", optional=True),
    FileOf("base", optional=True),
    Integer("most", 1, MAX_DRAWN, default=DRAWN),
    report=OF_DEVICE_PROFILES,
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
) -> CallGraphJson:
    """Return the call graph of one device, or of all devices of its file (`whole`); of the change since `base`."""
    devices = [other for other in file if other.kind.has_call_graph] if whole else [recording]
    before = None
    if base is not None:
        before = [other for other in base_file or () if other.kind.has_call_graph] if whole else [base]
    if not devices or before == []:
        raise BadParameter("No call graph over all devices", "whole=1", "remove it: this file has no device profiles")
    return call_graph(devices, before, by, Refine(focus=focus, ignore=ignore, hide=hide, fold=fold), most)


def call_graph(
    recordings: Sequence[Recording], base: Sequence[Recording] | None, by: Granularity, refine: Refine, most: int
) -> CallGraphJson:
    """Return the call graph of all `recordings`, or of their change since `base`. InputError for a bad expression."""
    samples = live_samples(recordings)
    if base is not None:
        samples = diff_samples(live_samples(base), samples)
    found = build_call_graph(samples, by, refine, most)
    nodes = found.nodes
    listed = slice(0, MAX_LISTED)  # functions in the picture come first: they are the largest
    function, file = (text.take(np.arange(len(text))[listed]).tolist() for text in (nodes.function, nodes.file))
    return record(
        CallGraphJson,
        found,
        by=by,
        nodes=record(
            CallNodesJson,
            {name: getattr(nodes, name)[listed] for name in FIGURES},
            function=function,
            file=file,
            drawn=found.drawn[listed].tolist(),
        ),
        nodes_total=len(nodes.flat),
        not_drawn=_left_out(nodes.cum[~found.drawn]),
        not_listed=_left_out(nodes.cum[MAX_LISTED:]),
    )


def _left_out(cum: I64) -> LeftOutJson:
    return {"nodes": len(cum), "largest": int(np.abs(cum).max(initial=0))}
