"""The check of recordings against a baseline: which grew by more than a tolerance, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from tb_memplugin.analysis.changes.explain import explain_change
from tb_memplugin.analysis.changes.facts import facts
from tb_memplugin.analysis.changes.matching import identity, match
from tb_memplugin.analysis.changes.names import program_name
from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.changes import Explanation
from tb_memplugin.model.memory_facts import MemoryFacts
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.shared.baseline_file import write_command
from tb_memplugin.views.shared.json_types import ProblemJson, problems_json
from tb_memplugin.views.shared.tolerance import Tolerance

MAX_RECORDINGS = 64
MIN_SHARE = 0.01  # of the largest recording of a kind; programs below it come and go with versions of JAX
Status = Literal["above", "within", "below"]


class CheckedRecording(NamedTuple):
    """A recording and its baseline."""

    id: str
    before: MemoryFacts
    now: MemoryFacts
    exceeded: list[str]
    """`peak` and `reserved`, as far as they are above the tolerance."""
    exceeded_roles: list[str]
    """Likewise roles, the one that grew the most first."""
    status: Status
    explanation: Explanation


class UnmatchedRecording(NamedTuple):
    """A recording without a baseline, or a baseline without a recording."""

    facts: MemoryFacts
    text: str


class BaselineCheck(NamedTuple):
    """The check of recordings against a baseline."""

    baseline: str
    tolerance: Tolerance
    checked: list[CheckedRecording]
    added: list[UnmatchedRecording]
    missing: list[UnmatchedRecording]
    problems: list[ProblemJson]


class RecordedFacts(NamedTuple):
    """The facts of a recording, and its id."""

    facts: MemoryFacts
    id: str


def baseline_facts(
    recordings: Sequence[Recording], known: Sequence[MemoryFacts] = ()
) -> tuple[list[RecordedFacts], list[ProblemJson]]:
    """Return the facts of the largest recordings, and of all whose names are in a baseline, `known`; and failures.

    Of equal recordings of several hosts there is one; of measured memories of one name, the one with the largest peak.
    """
    names = {identity(one) for one in known}
    sized, failed = each([r for r in recordings if r.is_main_memory and not r.kind.is_failure], _sized)
    largest: dict[str, int] = {}
    for one in sized:
        largest[one.recording.kind] = max(largest.get(one.recording.kind, 0), one.bytes)
    chosen = [one for one in sized if one.name in names or one.bytes >= MIN_SHARE * largest[one.recording.kind]]
    chosen.sort(key=lambda one: (one.name not in names, -one.bytes, one.recording.id))
    found, also_failed = each([one.recording for one in chosen[:MAX_RECORDINGS]], _recorded)
    distinct = list[RecordedFacts]()
    for recorded in found:
        others = [other.facts for other in distinct if identity(other.facts) == identity(recorded.facts)]
        if not others or (recorded.facts.kind.has_program and recorded.facts not in others):
            distinct.append(recorded)
    return distinct, problems_json(failed, also_failed)


class _Sized(NamedTuple):
    name: tuple[str, str, str]
    bytes: int
    recording: Recording


def _sized(recording: Recording) -> _Sized:
    name = recording.kind, program_name(recording.title), recording.memory
    return _Sized(name, peak(recording).bytes, recording)


def _recorded(recording: Recording) -> RecordedFacts:
    return RecordedFacts(facts(recording), recording.id)


def baseline_check(
    baseline: str, before: Sequence[MemoryFacts], recordings: Sequence[Recording], tolerance: Tolerance
) -> BaselineCheck:
    """Compare recordings with a baseline, the file from which `before` was read."""
    recorded, problems = baseline_facts(recordings, before)
    now = [one.facts for one in recorded]
    ids = {id(one.facts): one.id for one in recorded}
    matched = match(before, now)
    rewrite = f"`{write_command(baseline)}`"
    return BaselineCheck(
        baseline,
        tolerance,
        [_checked(old, new, ids[id(new)], tolerance) for old, new in matched.pairs],
        [
            UnmatchedRecording(one, f"is not in the baseline: {rewrite} adds it")
            for one in matched.added
            if one.peak_bytes >= MIN_SHARE * max(other.peak_bytes for other in now if other.kind == one.kind)
        ],
        [
            UnmatchedRecording(one, f"is in the baseline only: profile it, or remove it with {rewrite}")
            for one in matched.missing
        ],
        problems,
    )


def _checked(before: MemoryFacts, now: MemoryFacts, recording_id: str, tolerance: Tolerance) -> CheckedRecording:
    figures = [("peak", before.peak_bytes, now.peak_bytes)]
    if before.reserved_bytes is not None and now.reserved_bytes is not None:
        figures.append(("reserved", before.reserved_bytes, now.reserved_bytes))
    exceeded = [name for name, old, new in figures if new > tolerance.allowed(old)]
    is_less = any(old > tolerance.allowed(new) for _, old, new in figures)
    # Below the baseline, other arrays are live at the peak.
    roles = [] if is_less and not exceeded else _exceeded_roles(before, now, tolerance)
    status: Status = "above" if exceeded or roles else "below" if is_less else "within"
    return CheckedRecording(recording_id, before, now, exceeded, roles, status, explain_change(before, now))


def _exceeded_roles(before: MemoryFacts, now: MemoryFacts, tolerance: Tolerance) -> list[str]:
    """Return the roles that grew by more than the peak may grow, the one that grew the most first."""
    most = tolerance.allowed(before.peak_bytes) - before.peak_bytes
    grown = {role: size - before.roles.get(role, 0) for role, size in now.roles.items()}
    return sorted((role for role, size in grown.items() if size > most), key=lambda role: -grown[role])
