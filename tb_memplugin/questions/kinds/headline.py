"""The complete headline of a recording whose first view leaves out what takes longer to read."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING
from tb_memplugin.questions.kinds import device_profile, memory_profile, memory_viewer
from tb_memplugin.questions.kinds.first_view import roles_follow


class HeadlineJson(TypedDict):
    """The headline, with the sentences that need call stacks, steps and data flow, which take longer to read."""

    headline: str


def _follows(recording: Recording) -> bool:
    return recording.axis is Axis.TIME or roles_follow(recording)


@endpoint("headline", RECORDING, report=InReport(_follows))
def complete_headline(recording: Recording) -> HeadlineJson:
    """Return the headline with roles and the line that has the most memory, and over time with leaks."""
    if recording.kind.has_call_graph:
        return {"headline": device_profile.headline(recording)}
    view = memory_profile if recording.axis is Axis.TIME else memory_viewer
    return {"headline": view.headline(recording)}
