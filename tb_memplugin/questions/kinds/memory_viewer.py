"""The first view of a program: its figures, its verdict, and the largest buffers at the peak."""

from __future__ import annotations

from tb_memplugin.analysis.usage.live_set import figures
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.kinds.first_view import encode_first_view
from tb_memplugin.questions.oom import failure as oom
from tb_memplugin.questions.recording.usage import FIRST_BUCKETS, usage_of_program


def _is_shown(recording: Recording) -> bool:
    return recording.axis is not Axis.TIME and not recording.kind.has_call_graph


@endpoint("memory_viewer", RECORDING, report=InReport(_is_shown))
def first_view(recording: Recording) -> bytes:
    """Return the first view of a program, or of an out-of-memory failure."""
    recording = recording.outline  # the rest takes longer to read; api/rows returns it
    numbers = figures(recording) if recording.out_of_memory is None else oom.figures(recording)
    usage = usage_of_program(recording, 0, recording.length, FIRST_BUCKETS)
    return encode_first_view(recording, numbers, usage)
