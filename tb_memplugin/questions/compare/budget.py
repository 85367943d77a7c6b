"""The check of recordings against a memory budget, and the memory that a recording needs."""

from collections.abc import Iterator, Sequence
from typing import TypedDict

from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.headroom import required_bytes
from tb_memplugin.model.out_of_memory import OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import AnswerJson, Asked
from tb_memplugin.questions.asking.json_types import CaveatJson, ProblemJson, SummaryJson, problems_json
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.questions.recording.summary import caveats_json, summary
from tb_memplugin.questions.records import record
from tb_memplugin.regex import Regex
from tb_memplugin.sizes import agree, bytes_text, counted

EXPLANATION_LINES = 12  # enough to show the largest roles and model paths


class NeedJson(TypedDict):
    """The memory that a recording needs, and the figure that it is taken from."""

    id: str
    """The recording's id."""
    needed_bytes: int
    """The bytes that it needs."""
    figure: str
    """The name of that figure: `reserved` of a program, `peak` of other recordings, or `requested`: in use and the
    failed request."""
    caveats: list[CaveatJson]
    """The caveats of the recording."""


class AboveBudgetJson(SummaryJson):
    """A recording above the budget."""

    needed_bytes: int
    """The bytes that it needs."""
    figure: str
    """The name of that figure, as in [Need](#need)."""
    above_bytes: int
    """The bytes above the budget."""
    explanation: list[str]
    """The first lines of `explain`."""


class BudgetJson(TypedDict):
    """The check of recordings against a limit; those above it come worst first."""

    limit_bytes: int
    """The budget."""
    checked: list[NeedJson]
    """The recordings that were checked, the largest need first."""
    broken: list[AboveBudgetJson]
    """Those above the budget, worst first."""
    problems: list[ProblemJson]
    """The files and recordings that could not be checked. If nothing is above the budget, they make the exit code 2."""


def budget(recordings: Sequence[Recording], limit: int, chosen: Regex) -> BudgetJson:
    """Check recordings against a limit in bytes; return those above it, worst first, in JSON-compatible values.

    A program needs the memory that it reserves, as compilers compare it with their limit; the need of an out-of-memory
    failure is the memory in use plus the failed request; any other recording needs its peak. Of a program's memories,
    the device's main memory is checked, unless a pattern chooses others. `problems` are recordings that could not be
    checked.
    """
    selected = [r for r in recordings if chosen.search(r.id) and (chosen.pattern or r.is_main_memory)]
    found, failed = each(selected, lambda recording: _checked(recording, limit))
    above = [broken for _, broken in found if broken is not None]
    return {
        "limit_bytes": limit,
        "checked": [checked for checked, _ in found],
        "broken": sorted(above, key=lambda broken: broken["needed_bytes"], reverse=True),
        "problems": problems_json(failed),
    }


def need(recording: Recording) -> NeedJson:
    """Return the memory that a recording needs, and the name of the figure that is compared with the limit."""
    failure = recording.out_of_memory
    figure = "reserved" if recording.kind.has_program else "peak"
    if failure is not None and failure.phase is not OutOfMemoryPhase.COMPILE:
        figure = "requested"
    return {
        "id": recording.id,
        "needed_bytes": required_bytes(recording),
        "figure": figure,
        "caveats": caveats_json(recording),
    }


def _checked(recording: Recording, limit: int) -> tuple[NeedJson, AboveBudgetJson | None]:
    """Return the memory that a recording needs, and if that is above the limit, its explanation."""
    found = need(recording)
    above = found["needed_bytes"] - limit
    if above <= 0:
        return found, None
    explained, failed = each([recording], explanation)
    lines_of = explained[0] if explained else [failed[0].text]
    return found, record(AboveBudgetJson, summary(recording.outline), found, above_bytes=above, explanation=lines_of)


def explanation(recording: Recording) -> list[str]:
    """Return the first lines of the explanation of a recording."""
    return list(lines(explain(recording)))[:EXPLANATION_LINES]


VERBS = {"reserved": "reserves", "peak": "needs, at its peak,", "requested": "needs, with the failed request,"}


def budget_lines(answer: BudgetJson) -> Iterator[str]:
    """Format the answer of `budget` as lines of text."""
    broken, count, limit = answer["broken"], len(answer["checked"]), bytes_text(answer["limit_bytes"])
    if not broken:
        worst = max(answer["checked"], key=lambda checked: int(checked["needed_bytes"]))
        needs = f"{VERBS[worst['figure']]} {bytes_text(worst['needed_bytes'])}"
        yield f"Within {limit}: {counted(count, 'recording')} checked, the largest {needs}."
    for found in broken:
        above, needs = bytes_text(found["above_bytes"]), bytes_text(found["needed_bytes"])
        yield f"Above {limit} by {above}: {found['id']} {VERBS[found['figure']]} {needs}"
        yield ""
        yield from (f"    {line}".rstrip() for line in found["explanation"])
        yield ""
    if broken:
        yield f"{len(broken):,} of {counted(count, 'recording')} {agree(len(broken), 'is', 'are')} above {limit}."


class CheckAnswerJson(AnswerJson, BudgetJson):
    """The recordings that were checked, the largest need first, and those above the budget."""


def check_answer(found: BudgetJson, asked: Asked) -> CheckAnswerJson:
    """Return a check, and what to ask about the recording that is the most above the budget."""
    worst = found["broken"][:1]
    return asked.answer(
        CheckAnswerJson,
        found,
        checked=sorted(found["checked"], key=lambda one: -one["needed_bytes"]),
        broken=[{**one, "explanation": list(filter(None, one["explanation"]))} for one in found["broken"]],
        next=[
            *(asked.question("explain", "what takes the memory", one["id"]) for one in worst),
            *(asked.question("advice", "what would lower it", one["id"]) for one in worst),
        ],
    )
