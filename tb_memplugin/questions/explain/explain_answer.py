"""What is live at the peak or another moment, in short: roles, lines, model paths, leaks, and advice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NotRequired, TypedDict, TypeVar, cast

from tb_memplugin.analysis.leaks.over_snapshots import snapshots_of
from tb_memplugin.analysis.ownership.source_lines import heavy_lines
from tb_memplugin.analysis.usage.live_set import share
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION, AnswerJson, Asked, Question, bounded, fewer
from tb_memplugin.questions.asking.json_types import (
    AboutFile,
    OmittedJson,
    OutOfMemoryJson,
    ProblemJson,
    SummaryJson,
    problems_json,
)
from tb_memplugin.questions.explain.explain import ExplainedMoment, LiveAmountJson, LiveRoleJson, MomentJson, explain
from tb_memplugin.questions.kinds.joins import RuntimeToProgramJson
from tb_memplugin.questions.kinds.leaks import LeaksJson, VerdictName
from tb_memplugin.questions.oom.failure import programs_of
from tb_memplugin.questions.recording.kernels import KernelJson
from tb_memplugin.questions.recording.tree import TreeLineJson, heaviest_chains
from tb_memplugin.questions.records import record, records


class LineShareJson(TypedDict):
    """The live bytes of a source line, the user's innermost one."""

    line: str
    bytes: int
    share: float


class AdviceLineJson(TypedDict):
    """A change that lowers the peak; `advice` explains it and has the code."""

    kind: str
    title: str
    saving_bytes: int
    saving_of: str
    new_peak_bytes: int


class LiveSiteJson(TypedDict):
    """A buffer, or the live allocations of a site; `row` selects it in `buffers`."""

    row: int
    site: str
    shape: str
    allocations: int
    bytes: int
    share: float


class LeakLineJson(TypedDict):
    """An allocation site over steps, with its verdict."""

    row: int
    site: str
    shape: str
    verdict: VerdictName
    sentence: str
    bytes_per_step: float
    confidence: float
    live_bytes: int


class LeakAnswerJson(TypedDict):
    """Growth from step to step; `findings` are the sites that leak, and those that keep memory for a step."""

    message: str | None
    retained_gradients: list[str]
    unit: str
    steps: int
    warm_up_steps: int
    verdicts: dict[VerdictName, int]
    findings: list[LeakLineJson]
    omitted: NotRequired[OmittedJson]


class ExplainAnswerJson(AnswerJson):
    """The live memory of a recording at one moment."""

    headline: str
    recording: SummaryJson
    at: MomentJson
    figures_bytes: dict[str, int | None]
    """The figures of the page, at the peak or of all of the recording, beside those that `recording` has."""
    roles: list[LiveRoleJson]
    """All of them."""
    lines: list[LineShareJson]
    model: list[TreeLineJson]
    source: list[TreeLineJson]
    function: list[TreeLineJson]
    advice: NotRequired[list[AdviceLineJson]]
    buffers: NotRequired[list[LiveSiteJson]]
    groups: NotRequired[list[LiveSiteJson]]
    before: NotRequired[LiveAmountJson]
    unexplained: NotRequired[LiveAmountJson]
    kernels: NotRequired[list[KernelJson]]
    leaks: NotRequired[LeakAnswerJson]
    joins: NotRequired[RuntimeToProgramJson]
    out_of_memory: NotRequired[OutOfMemoryJson]
    problems: NotRequired[list[ProblemJson]]
    """Files that cannot be read, where the largest peak is explained: a larger one may be in them."""
    omitted: NotRequired[OmittedJson]


T = TypeVar("T")

REPORTED_VERDICTS = ("leak", "kept one step")  # the others do not grow
SHARE_DIGITS = 4
OF_RECORDING = ("live_peak", "reserved", "capacity", "reported_peak")  # figures that summaries have
COPIED: Final = ("kernels", "joins", "out_of_memory", "before", "unexplained")


def explain_answer(
    recording: Recording,
    others: Sequence[Recording],
    asked: Asked,
    at: str | None = None,
    problems: Iterable[AboutFile] = (),
) -> ExplainAnswerJson:
    """Explain the peak of a recording, or the moment `at`. `others` are the recordings of the same path.

    `problems`: of the files of the path, where no recording was asked for: a larger peak may be in them.
    InputError where `at` is not a moment of the recording.
    """
    found = explain(recording, at, others)
    most, omitted = fewer(asked.top), OmittedJson()
    lines, lines_total = heavy_lines(recording, found["at"]["position"], asked.top)
    omitted["lines"] = max(lines_total - len(lines), 0)

    def tree(key: Literal["model", "source", "function"], separator: str | None) -> list[TreeLineJson]:
        chains = heaviest_chains(found[key], most)
        omitted[key] = len(found[key]) - sum(len(chain.nodes) for chain in chains)
        return [chain.line(separator) for chain in chains]

    answer: ExplainAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "headline": found["headline"],
        "recording": found["recording"],
        "at": found["at"],
        "figures_bytes": {
            figure["key"]: figure["bytes"] for figure in found["figures"] if figure["key"] not in OF_RECORDING
        },
        "roles": found["roles"],
        "lines": [
            {"line": one.line, "bytes": one.bytes, "share": share(one.bytes, found["at"]["bytes"])} for one in lines
        ],
        "model": tree("model", "/"),
        "source": tree("source", None),
        "function": tree("function", ": "),
        "next": asked.next(*_questions(recording, others, found, asked)),
    }
    if "advice" in found:
        answer["advice"] = records(AdviceLineJson, found["advice"])
    if "buffers" in found:
        answer["buffers"] = records(LiveSiteJson, found["buffers"][:most])
        omitted["buffers"] = found["buffers_total"] - len(answer["buffers"])
    if "groups" in found:
        answer["groups"] = records(LiveSiteJson, found["groups"][:most])
        omitted["groups"] = len(found["groups"]) - len(answer["groups"])
    if "leaks" in found:
        answer["leaks"] = _leaks(found["leaks"])
    for key in COPIED:
        if key in found:
            answer[key] = found[key]
    if unread := problems_json(problems):
        answer["problems"] = unread
    answer["omitted"] = omitted
    return bounded(_rounded(answer), asked.top)


def _leaks(found: LeaksJson) -> LeakAnswerJson:
    reported = [one for one in found["findings"] if one["verdict"] in REPORTED_VERDICTS]
    return record(
        LeakAnswerJson,
        found,
        verdicts={name: count for name, count in found["verdicts"].items() if count},
        findings=[record(LeakLineJson, one, bytes_per_step=round(one["bytes_per_step"], 1)) for one in reported],
    )


def _rounded(value: T) -> T:
    """Return an answer with shares of few digits, which are of no use beside the bytes."""
    if isinstance(value, dict):
        rounded = {key: _rounded(item) for key, item in value.items()}
        return cast(T, rounded | ({"share": round(value["share"], SHARE_DIGITS)} if "share" in value else {}))
    return cast(T, [_rounded(item) for item in value]) if isinstance(value, list) else value


def _questions(
    recording: Recording, others: Sequence[Recording], found: ExplainedMoment, asked: Asked
) -> list[Question | None]:
    own, at = recording.id, {} if found["at"]["peak"] else {"at": f"#{found['at']['position']}"}
    if recording.kind.is_sampled:
        why = "who holds the memory, by the newest snapshot of this run"
        return [asked.question("explain", why, taken.id) for taken in snapshots_of(recording, others)[-1:]]
    timed = next((r for r in others if r.axis is Axis.TIME and r.run == recording.run and r is not recording), None)
    failed = [program.id for program in programs_of(recording, others)[:1]]
    return [
        *(asked.question("explain", "the program that did not fit, with its buffers", program) for program in failed),
        asked.question("advice", "how to lower the peak: sentences and code", own) if found.get("advice") else None,
        asked.question("buffers", "the largest buffers, one by one", own, **at) if len(recording.allocations) else None,
        asked.question("explain", "the memory of this run over time, with leaks", timed.id)
        if timed is not None and recording.axis is not Axis.TIME
        else None,
    ]
