"""The causes of the change between the peaks of two programs. They take longer than the comparison."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.analysis.changes.between import causes_between
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.endpoint import endpoint
from tb_memplugin.views.endpoints.inputs import RecordingOf
from tb_memplugin.views.shared.change_json import CauseJson, cause_json


class ChangeCausesJson(TypedDict):
    """The causes, the largest first; none for recordings that are no programs."""

    causes: list[CauseJson]


@endpoint("change_causes", RecordingOf("a"), RecordingOf("b"))
def change_causes(a: Recording, b: Recording) -> ChangeCausesJson:
    """Return what the programmer or the compiler changed from `a` to `b`, with what it adds to the peak."""
    return {"causes": [cause_json(cause) for cause in causes_between(a, b)]}
