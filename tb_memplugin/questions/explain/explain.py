"""The explanation of a moment for JSON: live memory by role and origin, leaks, advice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NotRequired, TypedDict

from tb_memplugin.analysis.ownership.classification import Classification
from tb_memplugin.analysis.usage.figure_definitions import Figure
from tb_memplugin.analysis.usage.live_bytes import count_stacks, peak
from tb_memplugin.analysis.usage.live_set import breakdown, bytes_by_role, figures, live_rows, share
from tb_memplugin.analysis.usage.steps import step_at
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.json_types import figure_json
from tb_memplugin.questions.asking.selectors import position_of
from tb_memplugin.questions.kinds import device_profile, leaks, memory_profile, memory_viewer, watched
from tb_memplugin.questions.kinds.joins import joins
from tb_memplugin.questions.oom import failure as oom
from tb_memplugin.questions.recording.advice import advice
from tb_memplugin.questions.recording.kernels import has_kernels, kernels
from tb_memplugin.questions.recording.sites import site
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.recording.tree import weighted_nodes

MAX_BUFFERS = 20  # of a program


def explain(recording: Recording, at: str | None = None, others: Sequence[Recording] = ()) -> dict[str, Any]:
    """Explain the peak of a recording, or the moment `at`, in JSON-compatible values.

    `others` are the other recordings of the logdir; an allocator is matched with the programs of its run and host.
    InputError where `at` is not a moment of the recording.
    """
    position = peak(recording).position if at is None else position_of(recording, at)
    answer = {"recording": summary(recording), "at": moment(recording, position), **_trees(recording, position)}
    if recording.kind.is_failure and (failure := oom.out_of_memory(recording)) is not None:
        oom_answer = {**_heading(oom.headline(recording), oom.figures(recording)), "out_of_memory": failure}
        return {**oom_answer, **answer, **_site_groups(recording, position)}
    if recording.kind.has_call_graph:
        heading = _heading(device_profile.headline(recording), device_profile.figures(recording))
        return {**heading, **answer, **_site_groups(recording, position)}
    answer["advice"] = advice(recording)["advice"]
    if has_kernels(recording):
        answer["kernels"] = kernels(recording)["kernels"]
    if recording.axis is not Axis.TIME:
        heading = _heading(memory_viewer.headline(recording), figures(recording))
        return {**heading, **answer, **_program(recording, position)}
    programs = [other for other in others if other.kind.has_program and _same_host(other, recording)]
    if recording.kind.runs_programs and programs:
        answer["joins"] = joins(recording, programs, position)
    if recording.kind.is_sampled:  # it has no allocations: lines are those of its snapshots
        heading = _heading(watched.headline(recording, others), watched.figures(recording))
        return {**heading, **answer, **_site_groups(recording, position)}
    heading = _heading(memory_profile.headline(recording), memory_profile.figures(recording))
    return {**heading, **answer, **_allocator(recording, position)}


def _heading(headline: str, numbers: Iterable[Figure]) -> dict[str, Any]:
    return {"headline": headline, "figures": [*map(figure_json, numbers)]}


def _same_host(one: Recording, other: Recording) -> bool:
    return (one.run, one.host) == (other.run, other.host)


def _trees(recording: Recording, position: int) -> dict[str, Any]:
    """Return the live bytes by role, model path, source and jitted function; each breakdown adds up to the total."""
    total = breakdown(recording, position).whole
    roles = [
        {"role": role.label, "bytes": size, "share": share(size, total)}
        for role, size in bytes_by_role(recording, position).items()
    ]
    return {
        "roles": roles,
        "model": weighted_nodes(recording, Classification.MODEL, position, merge=True),
        "source": weighted_nodes(recording, Classification.SOURCE, position),
        # A program is a single jitted function.
        "function": weighted_nodes(recording, Classification.FUNCTION, position) if recording.axis is Axis.TIME else [],
    }


class MomentJson(TypedDict):
    """A position of a recording; `bytes` are live there."""

    position: int
    instruction: NotRequired[str]
    """Of a program: the instruction there."""
    op_name: NotRequired[str]
    """Its model path."""
    time_ns: int | None
    step: str
    bytes: int
    peak: bool


def moment(recording: Recording, position: int) -> MomentJson:
    """Describe a position: its time in nanoseconds, its step, its live bytes, and whether it is the peak."""
    clock = recording.clock
    timed = clock is not None and 0 <= position < len(clock)
    found: MomentJson = {
        "position": position,
        "time_ns": int(clock[position]) if clock is not None and timed else None,
        "step": step_at(recording, position),
        "bytes": breakdown(recording, position).total,
        "peak": position == peak(recording).position,
    }
    if recording.program is not None and 0 <= position < recording.length:
        found["instruction"] = recording.program.name[position]
        found["op_name"] = recording.program.op_name[position]
    return found


def _program(recording: Recording, position: int) -> dict[str, Any]:
    rows, total = recording.allocations, breakdown(recording, position).whole
    largest = live_rows(recording, position)
    return {
        "buffers": [
            {**site(recording, row), "bytes": int(rows.charge[row]), "share": share(int(rows.charge[row]), total)}
            for row in largest[:MAX_BUFFERS].tolist()
        ],
        "buffers_total": len(largest),
    }


def _allocator(recording: Recording, position: int) -> dict[str, Any]:
    return {
        **_site_groups(recording, position),
        "stacks": count_stacks(recording)._asdict(),
        "leaks": leaks.findings(recording),
    }


def _site_groups(recording: Recording, position: int) -> dict[str, Any]:
    live = breakdown(recording, position)
    groups = [
        {**site(recording, row), "allocations": count, "bytes": size, "share": share(size, live.whole)}
        for row, count, size in zip(live.row.tolist(), live.allocations.tolist(), live.bytes.tolist(), strict=True)
    ]
    return {
        "groups": groups,
        "before": {"bytes": live.before, "share": share(live.before, live.whole)},
        "unexplained": {"bytes": live.unexplained, "share": share(live.unexplained, live.whole)},
    }
