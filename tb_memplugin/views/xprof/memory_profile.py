"""XProf's own Memory Profile answer, for its page and for scripts that read its JSON.

The schema is that of XProf 2.24: bytes and picoseconds, 64-bit numbers as strings, no field left out. The figures are
those of the recordings.
"""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.isolate import each
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.source_tables import NamedSpans
from tb_memplugin.views.xprof.allocator_profile import AllocatorProfile
from tb_memplugin.views.xprof.json_fields import Json

MAX_EXECUTIONS = 10_000  # of a plane
TPU = "TPU core "


def memory_profile(recordings: list[Recording]) -> Json:
    """Return XProf's answer for one host, given the recordings of its allocators; XProf's page opens the first.

    InputError where none of several, or the only one, can be answered.
    """
    found, failed = each(recordings, lambda recording: (memory_id(recording), AllocatorProfile(recording).fields()))
    if failed and not found:
        raise InputError("No allocator can be shown", failed[0].file, failed[0].text)
    profiles = dict(found)
    return {
        "memoryProfilePerAllocator": profiles,
        "numHosts": 1,
        "memoryIds": list(profiles),
        "version": 1,
        "hloModules": _hlo_modules(recordings),
    }


def memory_id(recording: Recording) -> str:
    """Return XProf's name of a memory: the allocator's name, or the number of a TPU core."""
    return recording.memory.removeprefix(TPU)


def _hlo_modules(recordings: list[Recording]) -> list[Json]:
    """Return the executions of programs, on TPU cores or, on other devices, as called by the host."""
    cores = {int(name): r for r in recordings if r.memory.startswith(TPU) and (name := memory_id(r)).isdecimal()}
    planes = [(f"TPU:{core}", recording) for core, recording in sorted(cores.items())] or [
        ("host", r) for r in recordings[:1]
    ]
    executions = [(plane, r.spans, span) for plane, r in planes if r.spans is not None for span in _executions(r.spans)]
    return [
        {
            "name": spans.name[span],
            "startTimePs": str(int(spans.start_ns[span]) * 1000),
            "endTimePs": str(int(spans.end_ns[span]) * 1000),
            "id": str(number),
            "planeName": plane,
        }
        for number, (plane, spans, span) in enumerate(executions)
    ]


def _executions(spans: NamedSpans) -> list[int]:
    rows: list[int] = np.flatnonzero(spans.kind == SpanKind.EXECUTION)[:MAX_EXECUTIONS].tolist()
    return rows
