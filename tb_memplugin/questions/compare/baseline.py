"""The check of recordings against a baseline: which grew by more than a tolerance, and why."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypedDict

from tb_memplugin.analysis.compare.causes import explain_change
from tb_memplugin.analysis.compare.facts import facts, identity, match
from tb_memplugin.analysis.compare.stable_paths import program_name
from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.changes import Explanation, MemoryFacts
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import AnswerJson, Asked, Question
from tb_memplugin.questions.asking.files import BaselineFileJson
from tb_memplugin.questions.asking.json_types import ProblemJson, problems_json
from tb_memplugin.questions.compare.baseline_file import Tolerance, write_command
from tb_memplugin.questions.compare.causes import ExplanationJson, explanation_json
from tb_memplugin.questions.records import record

MAX_RECORDINGS = 64
MIN_SHARE = 0.01  # of the largest recording of a kind; smaller programs come and go with versions of JAX
Status = Literal["above", "within", "below"]


class CheckedRecording(NamedTuple):
    """A recording and its baseline."""

    id: str
    before: MemoryFacts
    now: MemoryFacts
    exceeded: list[str]
    """The figures above the tolerance: `peak`, `reserved`."""
    exceeded_roles: list[str]
    """The roles above it, the one that grew the most first."""
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
    """Return the facts of the largest recordings, and problems of recordings without facts.

    Recordings whose names are in a baseline, `known`, are always included. Hosts that run one program have equal facts,
    which are included once. Of measured memories of one name, the one with the largest peak is included.
    """
    wanted = {identity(one) for one in known}

    def sized(one: Recording) -> tuple[bool, int, Recording]:
        """Return whether the baseline has a recording, and its peak, which are known without its facts."""
        return (one.kind, program_name(one.title), one.memory) in wanted, peak(one).bytes, one

    measured, failed = each([r for r in recordings if r.is_main_memory and not r.kind.is_failure], sized)
    largest = defaultdict[str, int](int)
    for _, size, one in measured:
        largest[one.kind] = max(largest[one.kind], size)
    chosen = [found for found in measured if found[0] or found[1] >= MIN_SHARE * largest[found[2].kind]]
    chosen.sort(key=lambda found: (not found[0], -found[1], found[2].id))
    found, also_failed = each(
        [one for _, _, one in chosen[:MAX_RECORDINGS]], lambda one: RecordedFacts(facts(one), one.id)
    )
    distinct = list[RecordedFacts]()
    for recorded in found:
        others = [other.facts for other in distinct if identity(other.facts) == identity(recorded.facts)]
        if not others or (recorded.facts.kind.has_program and recorded.facts not in others):
            distinct.append(recorded)
    return distinct, problems_json(failed, also_failed)


def baseline_check(
    baseline: str,
    before: Sequence[MemoryFacts],
    recordings: Sequence[Recording],
    tolerance: Tolerance,
    with_roles: bool = True,
) -> BaselineCheck:
    """Compare recordings with a baseline, the file from which `before` was read.

    `with_roles`: compare the peak by role as well, beside peak and reserved memory.
    """
    recorded, problems = baseline_facts(recordings, before)
    now = [one.facts for one in recorded]
    ids = {id(one.facts): one.id for one in recorded}
    matched = match(before, now)
    rewrite = f"`{write_command(baseline)}`"
    return BaselineCheck(
        baseline,
        tolerance,
        [_checked(old, new, ids[id(new)], tolerance, with_roles) for old, new in matched.pairs],
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


def _checked(
    before: MemoryFacts, now: MemoryFacts, recording_id: str, tolerance: Tolerance, with_roles: bool
) -> CheckedRecording:
    figures = [("peak", before.peak_bytes, now.peak_bytes)]
    if before.reserved_bytes is not None and now.reserved_bytes is not None:
        figures.append(("reserved", before.reserved_bytes, now.reserved_bytes))
    exceeded = [name for name, old, new in figures if new > tolerance.allowed(old)]
    is_less = any(old > tolerance.allowed(new) for _, old, new in figures)
    # A lower peak is elsewhere, where other arrays are live: a role that grew there is no problem.
    roles = _exceeded_roles(before, now, tolerance) if with_roles and (exceeded or not is_less) else []
    status: Status = "above" if exceeded or roles else "below" if is_less else "within"
    return CheckedRecording(recording_id, before, now, exceeded, roles, status, explain_change(before, now))


def _exceeded_roles(before: MemoryFacts, now: MemoryFacts, tolerance: Tolerance) -> list[str]:
    """Return the roles that grew by more than the peak may grow, the one that grew the most first."""
    most = tolerance.allowed(before.peak_bytes) - before.peak_bytes
    grown = {role: size - before.roles_bytes.get(role, 0) for role, size in now.roles_bytes.items()}
    return sorted((role for role, size in grown.items() if size > most), key=lambda role: -grown[role])


ORDER = {"above": 0, "below": 1, "within": 2}


class FiguresJson(TypedDict):
    """Figures of a recording."""

    peak_bytes: int
    """Peak live bytes."""
    reserved_bytes: int | None
    """Reserved bytes."""
    roles_bytes: Mapping[str, int]
    """Bytes at the peak, by role."""


class NamedMemoryJson(TypedDict):
    """The names of a recording that stay the same between compiles."""

    name: str
    """The program or memory, without numbers of compilers."""
    kind: str
    """As in [Recording](#recording)."""
    memory: str
    """As in [Recording](#recording)."""


class BaselineRecordingJson(NamedMemoryJson, FiguresJson):
    """A recording of a baseline."""

    id: str
    """The recording's id."""


class BaselineAnswerJson(AnswerJson):
    """The baseline that was written, without its arrays."""

    file: BaselineFileJson | None
    """The file that was written; null without `--write`."""
    tolerance: str
    """The allowed growth, such as `2%`."""
    recordings: list[BaselineRecordingJson]
    """The recordings in it, the largest peak first."""
    problems: list[ProblemJson]
    """The files and recordings that could not be read."""


class BaselineCheckedJson(NamedMemoryJson, ExplanationJson):
    """A recording and its baseline."""

    id: str
    """The recording's id."""
    name_before: str
    """Its name in the baseline."""
    status: Status
    """`above` or `within` the tolerance, or `below` the baseline by more than that."""
    exceeded: list[str]
    """`peak`, `reserved`: the figures above the tolerance."""
    exceeded_roles: list[str]
    """The roles above it, the one that grew the most first."""
    before: FiguresJson
    """The figures of the baseline."""
    now: FiguresJson
    """The figures of the recording."""


class UnmatchedJson(NamedMemoryJson):
    """A recording without a baseline, or a baseline without a recording."""

    peak_bytes: int
    """Peak live bytes."""
    reserved_bytes: int | None
    """Reserved bytes."""
    text: str
    """The remedy."""


class CheckBaselineAnswerJson(AnswerJson):
    """The check of recordings against a baseline."""

    baseline: str
    """The baseline's file."""
    tolerance: str
    """The allowed growth, such as `2%`."""
    checked: list[BaselineCheckedJson]
    """The recordings that are in the baseline, those above the tolerance first."""
    added: list[UnmatchedJson]
    """Recordings that are not in it."""
    missing: list[UnmatchedJson]
    """Recordings of the baseline that were not found. If nothing is above the tolerance, they make the exit code 2."""
    problems: list[ProblemJson]
    """The files and recordings that could not be checked."""


def baseline_answer(
    file: BaselineFileJson | None,
    tolerance: str,
    found: Sequence[RecordedFacts],
    problems: list[ProblemJson],
    asked: Asked,
) -> BaselineAnswerJson:
    """Return what a baseline contains, the largest peak first, and the check against it."""
    check = [Question("check", {"path": asked.path, "baseline": file["path"]}, "what grew since")] if file else []
    ordered = sorted(found, key=lambda one: -one.facts.peak_bytes)
    recordings = [record(BaselineRecordingJson, one, one.facts) for one in ordered]
    return asked.answer(
        BaselineAnswerJson, file=file, tolerance=tolerance, recordings=recordings, problems=problems, next=check
    )


def check_baseline_answer(found: BaselineCheck, asked: Asked) -> CheckBaselineAnswerJson:
    """Return the check, and further questions about the recording that grew the most."""
    checked = sorted(found.checked, key=lambda one: (ORDER[one.status], one.before.peak_bytes - one.now.peak_bytes))
    return asked.answer(
        CheckBaselineAnswerJson,
        found,
        tolerance=found.tolerance.text,
        checked=[
            record(BaselineCheckedJson, one, one.now, name_before=one.before.name, **explanation_json(one.explanation))
            for one in checked
        ],
        added=[record(UnmatchedJson, one, one.facts) for one in found.added],
        missing=[record(UnmatchedJson, one, one.facts) for one in found.missing],
        next=[
            asked.question("explain", f"what is live at the peak of {one.now.name}", one.id)
            for one in checked[:1]
            if one.status == "above"
        ],
    )
