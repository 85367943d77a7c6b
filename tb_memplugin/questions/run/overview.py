"""A run at a glance: a row for each recording, by the used share of its limit, and the programs that share a memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from tb_memplugin.analysis.isolate import each, usable
from tb_memplugin.analysis.linking import CoResidency, co_residency, running_at_peak
from tb_memplugin.analysis.ownership.classification import heaviest_layer
from tb_memplugin.analysis.usage.headroom import Headroom, device_allocators, headroom
from tb_memplugin.analysis.usage.live_bytes import doubts, excess_bytes, peak
from tb_memplugin.analysis.usage.live_set import bytes_by_role, share
from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.model.kinds import DEVICE_MEMORY, Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.questions.asking.inputs import RUN, RUNS
from tb_memplugin.questions.asking.json_types import CaveatJson, ProblemJson, SummaryJson, problems_json
from tb_memplugin.questions.asking.source import Runs
from tb_memplugin.questions.kinds.watched import growth_sentence
from tb_memplugin.questions.oom.failure import sentences
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.records import record
from tb_memplugin.questions.run.order import Fitted, ordered
from tb_memplugin.sizes import bytes_text, percent_text

MAX_LEAKS = 2  # of the headline; each row has its own


class RoleShareJson(TypedDict):
    """The role with the most bytes at the peak."""

    role: int
    bytes: int
    share: float


class PartShareJson(TypedDict):
    """The layers, function or line with the most bytes at the peak; `repeats` counts layers of the same name."""

    name: str
    repeats: int
    bytes: int
    share: float


class OverviewRowJson(SummaryJson):
    """One recording of a run, with its capacity and headroom."""

    needed_bytes: int
    """Bytes that must fit: reserved by a program, or the peak of an allocator."""
    headroom_bytes: int | None
    """Negative if the program does not fit; null if the capacity is unknown."""
    small: bool
    """True: a memory that needs less than 1 % of the largest."""
    role: RoleShareJson | None
    part: PartShareJson | None
    remedy: str | None
    """Advice after an out-of-memory failure, derived from its text."""
    alarm: str
    """For a job that is watched: the leak, in the sentence of `explain`; empty without one."""


class ResidentProgramJson(TypedDict):
    """A program in a memory that several share."""

    id: str
    title: str
    held_bytes: int
    again_bytes: int
    """The part of `held_bytes` that a larger program has too."""
    temporary_bytes: int
    runs: int | None


class MeasuredJson(TypedDict):
    """The measured peak of an allocator."""

    id: str
    memory: str
    bytes: int


class CoResidencyJson(TypedDict):
    """The programs that share one memory of a host, the largest first."""

    host: str
    memory: str
    bytes: int
    sentence: str
    """Derivation of `bytes`, with its limits."""
    programs: list[ResidentProgramJson]
    measured: list[MeasuredJson]


class OverviewJson(TypedDict):
    """Overview of a run, the recording that uses the largest share of its limit first."""

    headline: str
    rows: list[OverviewRowJson]
    together: list[CoResidencyJson]
    caveats: list[CaveatJson]
    """Those that put figures in doubt, each with the name of its recording."""
    problems: list[ProblemJson]
    """Recordings that cannot be analyzed. Unreadable files are in the list of recordings."""


@endpoint("overview", RUNS, RUN, report=EACH_CHOICE)
def overview_of_run(runs: Runs, run: str) -> OverviewJson:
    """Return a run's overview. Programs that share a memory are known only if no recording was omitted."""
    found = runs.run(run)
    answer = overview(found.recordings)
    return {**answer, "together": []} if found.partial else answer


@endpoint("overview_figures", RUNS, RUN)
def overview_figures(runs: Runs, run: str) -> OverviewJson:
    """Return a run's overview without roles, parts and shared memories, which take seconds for large programs."""
    found, failed = each(runs.run(run).recordings, _figures)
    return _answer(found, [], problems_json(failed))


def overview(recordings: Sequence[Recording]) -> OverviewJson:
    """Return the overview of all recordings of a run."""
    found, failed = each(recordings, lambda recording: _entry(recording, recordings))
    sharing, not_shared = usable([entry.recording for entry in found], _together)
    return _answer(found, _together(sharing), problems_json(failed, not_shared))


def _answer(found: Sequence[_Entry], together: list[CoResidencyJson], problems: list[ProblemJson]) -> OverviewJson:
    shown, small = ordered(found)
    entries = [*shown, *small]
    for entry in small:
        entry.row["small"] = True
    leaking = [entry for entry in entries if entry.row["alarm"]][:MAX_LEAKS]
    return {
        "headline": " ".join([headline(entries), *(f"{_name(e.recording)}: {e.row['alarm']}" for e in leaking)]),
        "rows": [entry.row for entry in entries],
        "together": together,
        "caveats": [caveat for entry in entries for caveat in entry.doubts],
        "problems": problems,
    }


def _doubts(recording: Recording) -> list[CaveatJson]:
    return [record(CaveatJson, caveat, text=f"{_name(recording)}: {caveat.text}") for caveat in doubts(recording)]


@dataclass(frozen=True)
class _Entry(Fitted):
    row: OverviewRowJson
    doubts: list[CaveatJson]


def _entry(recording: Recording, others: Sequence[Recording]) -> _Entry:
    readable = _readable(recording)
    room = headroom(readable)
    return _Entry(readable, room, _row(readable, room, others), _doubts(readable))


def _figures(recording: Recording) -> _Entry:
    """Return a recording's row without role and part. Nothing that is read on access is read."""
    outline = recording.outline
    room = headroom(outline)
    return _Entry(outline, room, _row_of_figures(outline, room), _doubts(outline))


def _together(recordings: Sequence[Recording]) -> list[CoResidencyJson]:
    return [_place(place, recordings) for place in co_residency(recordings)]


def _readable(recording: Recording) -> Recording:
    """Return the recording, or its outline if the rest is damaged: its figures are correct without names and spans."""
    try:
        return recording.load()
    except ReadError:
        raise
    except InputError:
        return recording.outline


def headline(entries: Sequence[Fitted]) -> str:
    """Return a sentence about the first recording, which uses the largest share of its limit."""
    if not entries:
        return "This run has no recordings."
    many = f"{len(entries):,} recordings. " if len(entries) > 1 else ""
    first, known = entries[0].recording, entries[0].room
    name = _name_of_equal(entries)
    if first.out_of_memory is not None:
        return f"{many}{' '.join(sentences(first)[:2])}"
    if known.left is None or known.capacity is None:
        top = max(entries, key=lambda entry: peak(entry.recording).bytes).recording
        unknown = "Device capacity is not recorded in this run."
        return f"{many}The largest peak is {bytes_text(peak(top).bytes)}, of {_name(top)}. {unknown}"
    if known.left < 0:
        return (
            f"{many}{name} does not fit: it {_verb(first)} {bytes_text(known.needed)} of {bytes_text(known.capacity)}, "
            f"{bytes_text(-known.left)} too much."
        )
    return (
        f"{many}{name} uses the largest share of its limit: it {_verb(first)} {bytes_text(known.needed)} of "
        f"{bytes_text(known.capacity)} ({percent_text(known.needed, known.capacity, 1)}), and "
        f"{bytes_text(known.left)} is left."
    )


def _name_of_equal(entries: Sequence[Fitted]) -> str:
    """Return the name of the first recording, without one host or device where several are equal."""
    first, room = entries[0].recording, entries[0].room

    def is_equal(other: Fitted) -> bool:
        same_program = not first.kind.has_program or (first.title, first.memory) == (
            other.recording.title,
            other.recording.memory,
        )
        return same_program and other.recording.kind is first.kind and other.room == room

    equal = [other.recording for other in entries if is_equal(other)]
    hosts, memories = {other.host for other in equal}, {other.memory for other in equal}
    if len(equal) < 2 or (len(hosts) == 1 and len(memories) == 1):
        return _name(first)
    if len(hosts) > 1 and (first.kind.has_program or len(memories) == 1):
        name = _name(first) if first.kind.has_program else first.memory
        return f"{name} on each of {len(hosts):,} equal hosts"
    return f"Each of {len(equal):,} equal memories, such as {_name(first)},"


def _verb(recording: Recording) -> str:
    """Return how a recording needs memory: a program must fit with all that it reserves."""
    return "reserves" if recording.kind.has_program else "needs"


def _name(recording: Recording) -> str:
    if recording.kind.has_program:
        return f"{recording.title} in {recording.memory}"
    where = recording.title if recording.axis is Axis.INSTANT else recording.host
    return f"{recording.memory} of {where}" if where else recording.memory


def _row_of_figures(recording: Recording, room: Headroom, others: Sequence[Recording] | None = None) -> OverviewRowJson:
    return {
        **summary(recording),
        "needed_bytes": room.needed,
        "capacity_bytes": room.capacity,
        "capacity_source": room.source,
        "headroom_bytes": room.left,
        "small": False,
        "role": None,
        "part": None,
        # From the text of an out-of-memory failure. The other advice takes longer, and the page requests it separately.
        "remedy": next(iter(sentences(recording)[2:]), None),
        "alarm": growth_sentence(recording, others) if recording.kind.is_sampled else "",
    }


def _row(recording: Recording, room: Headroom, others: Sequence[Recording]) -> OverviewRowJson:
    top = peak(recording)
    roles = bytes_by_role(recording, top.position)
    # Rows that exceed the bytes in use are no parts of them.
    consistent = not excess_bytes(recording)
    role = next(iter(roles), Role.UNKNOWN) if consistent else Role.UNKNOWN
    part = heaviest_layer(recording) if consistent else None
    return {
        **_row_of_figures(recording, room, others),
        "role": {"role": int(role), "bytes": roles[role], "share": share(roles[role], top.bytes)} if role else None,
        "part": record(PartShareJson, part, share=share(part.bytes, top.bytes)) if part is not None else None,
    }


def _place(place: CoResidency, recordings: Sequence[Recording]) -> CoResidencyJson:
    of_device = device_allocators(place.host, recordings) if place.memory == DEVICE_MEMORY else []
    return record(
        CoResidencyJson,
        place,
        sentence=_how(place, max(of_device, key=lambda allocator: peak(allocator).bytes, default=None)),
        programs=[
            record(
                ResidentProgramJson,
                resident,
                resident.program,
                held_bytes=resident.persistent,
                again_bytes=resident.shared,
                temporary_bytes=resident.temporary,
            )
            for resident in place.programs
        ],
        measured=[record(MeasuredJson, allocator, bytes=peak(allocator).bytes) for allocator in of_device],
    )


def _how(place: CoResidency, fullest: Recording | None) -> str:
    """Return how the sum is computed, and how far it can be trusted."""
    measured = ""
    if fullest is not None:
        running = running_at_peak(fullest)
        ran = f", while {' and '.join(running)} ran" if running else ""
        measured = f" The fullest device, {fullest.memory}, had {bytes_text(peak(fullest).bytes)} in use{ran}."
    which = "ran in this profile" if place.executed else "are in this run; whether all of them ran is not recorded"
    return (
        f"At most {bytes_text(place.bytes)}, from the {len(place.programs):,} programs that {which}. They run one "
        "after the other, so only the largest temporaries count. Persistent memory is added up; arguments of the same "
        "path and shape count once. The sum is smaller where one program's output is another's argument."
        f"{measured}"
    )
