"""The first view of any recording: what a tab shows before all rows have arrived."""

from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.usage.figure_definitions import Figure
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import figures, live_rows
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.asking.json_types import CaveatJson, FigureJson, OutOfMemoryJson, SummaryJson
from tb_memplugin.questions.asking.payload import compact, encode
from tb_memplugin.questions.kinds import device_profile, memory_profile
from tb_memplugin.questions.kinds.verdict import RecordingVerdictJson, roles_follow, verdict, verdict_follows
from tb_memplugin.questions.oom import failure as oom
from tb_memplugin.questions.recording.columns import OF_DATA_FLOW
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.recording.tables import address_table, row_table
from tb_memplugin.questions.recording.usage import FIRST_BUCKETS, usage_table
from tb_memplugin.questions.records import records

# More rows than a screen shows. The others follow in a second request, so that the first answer is small for programs
# of any size.
FIRST_ROWS = 512


class AxisInfoJson(TypedDict):
    """The axis of a recording: what a position is, and how many there are."""

    kind: str
    length: int


class PeakJson(TypedDict):
    """Position of the peak."""

    position: int


class FirstViewMetaJson(TypedDict):
    """The part of a first view that is no table."""

    recording: SummaryJson
    axis: AxisInfoJson
    verdict: RecordingVerdictJson
    figures: list[FigureJson]
    caveats: list[CaveatJson]
    peak: PeakJson
    regions: int
    out_of_memory: OutOfMemoryJson | None


@endpoint("memory_viewer", RECORDING, report=InReport(lambda r: r.axis is not Axis.TIME and not r.kind.has_call_graph))
@endpoint("memory_profile", RECORDING, report=InReport(lambda recording: recording.axis is Axis.TIME))
def first_view(recording: Recording) -> bytes:
    """Return verdict, figures, `usage` in buckets, and the largest `rows` that are live at the peak."""
    recording = recording.outline  # the rest takes longer to read; api/rows returns it
    top = peak(recording)
    largest = live_rows(recording, top.position)[:FIRST_ROWS]
    summarized = summary(recording)
    meta: FirstViewMetaJson = {
        "recording": summarized,
        "axis": {"kind": recording.axis.value, "length": recording.length},
        "verdict": verdict(recording, outline=verdict_follows(recording)),
        "figures": records(FigureJson, page_figures(recording)),
        "caveats": summarized["caveats"],
        "peak": {"position": top.position},
        "regions": len(recording.regions),
        # Over time, a failure is one of many events and is marked at its position.
        "out_of_memory": oom.out_of_memory(recording) if recording.axis is not Axis.TIME else None,
    }
    # The names of stacks are made of all rows, not of the listed ones.
    late = {"stack", *(OF_DATA_FLOW if roles_follow(recording) else ())}
    rows = {
        name: compact(column) if isinstance(column, Text) else column
        for name, column in row_table(recording, largest, without=late).items()
    }
    listed = {"row": largest.astype(np.uint32), **rows, **address_table(recording, largest)}
    return encode(meta, {"usage": usage_table(recording, 0, recording.length, FIRST_BUCKETS), "rows": listed})


def page_figures(recording: Recording) -> list[Figure]:
    """Return the figures of the page in display order."""
    if recording.axis is Axis.TIME:
        return memory_profile.figures(recording)
    if recording.kind.has_call_graph:
        return device_profile.figures(recording)
    return oom.figures(recording) if recording.kind.is_failure else figures(recording)
