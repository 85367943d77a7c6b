"""The memory live at the peak or another moment, in short: roles, lines, model paths, leaks, and advice."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NotRequired

import numpy as np

from tb_memplugin.analysis.leaks.classify import floor_growth
from tb_memplugin.analysis.leaks.over_snapshots import rise, snapshots_of
from tb_memplugin.analysis.ownership.source_lines import heavy_lines
from tb_memplugin.analysis.usage.live_set import share
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import AnswerJson, Asked, OmittedJson, Question, fewer
from tb_memplugin.questions.asking.json_types import AboutFile, ProblemJson, problems_json
from tb_memplugin.questions.explain.explain import ExplainedMoment, LiveAmountJson, LiveMemoryJson, explain
from tb_memplugin.questions.kinds.leaks import GrowthOverStepsJson, LeaksJson, SiteVerdictJson
from tb_memplugin.questions.kinds.watched import growth_message, growth_sentence
from tb_memplugin.questions.recording.advice import AdviceLineJson, FitsWithJson
from tb_memplugin.questions.recording.tree import TreeLineJson, heaviest_chains
from tb_memplugin.questions.records import record, records


class LineShareJson(LiveAmountJson):
    """The live bytes of a source line, the user's innermost one."""

    line: str
    """The source line, `folder/train.py:12`."""


class LiveSiteJson(LiveAmountJson):
    """A buffer, or the live allocations of a site; `row` selects it in `buffers`."""

    row: int
    """The row of the buffer, or of an allocation that stands for the site."""
    site: str
    """The innermost source line, or the best other name."""
    shape: str
    """The shape with its layout."""
    allocations: int
    """The number of allocations that it stands for."""


class LeakLineJson(SiteVerdictJson):
    """An allocation site over steps, with its verdict."""

    row: int | None
    """The row of an allocation of the site; null for a job that is watched, which has no rows."""
    site: str
    """The innermost source line, or the best other name."""
    shape: str
    """The shape, or `various`."""


class LeakAnswerJson(GrowthOverStepsJson):
    """Growth from step to step; `findings` are the sites that leak, and those that keep memory for a step."""

    findings: list[LeakLineJson]
    """The sites that leak, then those that keep memory for a step."""
    omitted: NotRequired[OmittedJson]


class ExplainAnswerJson(AnswerJson, LiveMemoryJson):
    """The live memory of a recording at one moment."""

    figures_bytes: dict[str, int | None]
    """The figures of the page, at the peak or of the whole recording, by name: `padding`, `fragmented`, ..., beside
    those that `recording` has; the [glossary](glossary.md) defines them."""
    lines: list[LineShareJson]
    """The live bytes by the user's innermost source line."""
    advice: NotRequired[list[AdviceLineJson]]
    """The changes that lower the peak, the largest saving for the time that it costs first."""
    fits_with: NotRequired[FitsWithJson | None]
    """The changes to make first where it does not fit; null if it fits, or the limit is unknown."""
    buffers: NotRequired[list[LiveSiteJson]]
    """For a program: the largest live buffers."""
    groups: NotRequired[list[LiveSiteJson]]
    """For other kinds: the live allocations by site, role and shape."""
    leaks: NotRequired[LeakAnswerJson]
    """For an allocator and a job that is watched: growth from step to step."""
    problems: NotRequired[list[ProblemJson]]
    """Without `--recording`: the files of the path that cannot be read; a larger peak may be in them."""


REPORTED_VERDICTS = ("leak", "kept one step")  # sites with other verdicts do not grow
SHARE_DIGITS = 4
OF_RECORDING = ("live_peak", "reserved", "capacity", "reported_peak")  # figures that summaries have


def explain_answer(
    recording: Recording,
    others: Sequence[Recording],
    asked: Asked,
    at: str | None = None,
    problems: Iterable[AboutFile] = (),
    outcomes: Sequence[Outcome] = (),
) -> ExplainAnswerJson:
    """Explain the peak of a recording, or the moment `at`. `others` are the recordings of the same path.

    `problems`: of the files of the path, where no recording was asked for: a larger peak may be in them.
    `outcomes`: the candidates of fits there.
    InputError where `at` is not a moment of the recording.
    """
    most, omitted = fewer(asked.top), OmittedJson()
    found = explain(recording, at, others, outcomes, most)
    lines, lines_total = heavy_lines(recording, found["at"]["position"], asked.top)
    omitted["lines"] = max(lines_total - len(lines), 0)

    def tree(key: Literal["model", "source", "function"], separator: str | None) -> list[TreeLineJson]:
        chains = heaviest_chains(found[key], most)
        omitted[key] = len(heaviest_chains(found[key], None)) - len(chains)
        return [chain.line(separator) for chain in chains]

    short: dict[str, Any] = {
        "figures_bytes": {
            figure["key"]: figure["bytes"] for figure in found["figures"] if figure["key"] not in OF_RECORDING
        },
        "lines": [record(LineShareJson, one, share=share(one.bytes, found["at"]["bytes"])) for one in lines],
        "model": tree("model", "/"),
        "source": tree("source", None),
        "function": tree("function", ": "),
    }
    if "advice" in found:
        short["advice"] = records(AdviceLineJson, found["advice"]["advice"])
        short["fits_with"] = found["advice"]["fits_with"]
    if "buffers" in found:
        short["buffers"] = records(LiveSiteJson, found["buffers"])
        omitted["buffers"] = found["buffers_total"] - len(short["buffers"])
    if "groups" in found:
        short["groups"] = records(LiveSiteJson, found["groups"][:most])
        omitted["groups"] = len(found["groups"]) - len(short["groups"])
    if "leaks" in found:
        short["leaks"] = _leaks(found["leaks"])
    if recording.kind.is_sampled:
        short["leaks"] = _watched_leaks(recording, others)
    if unread := problems_json(problems):
        short["problems"] = unread
    further = _questions(recording, others, found, asked)
    return asked.answer(ExplainAnswerJson, _rounded({**found, **short}), omitted=omitted, next=further)


def _watched_leaks(recording: Recording, others: Sequence[Recording]) -> LeakAnswerJson:
    """Return the growth of a curve, in which one site stands for all memory: the line that grows in its snapshots."""
    found, sentence = floor_growth(recording), growth_sentence(recording, others)
    findings: list[LeakLineJson] = []
    if found is not None and sentence:
        rising = rise(recording, others)
        findings.append(
            {
                "verdict": "leak",
                "sentence": sentence,
                "bytes_per_step": round(found.bytes_per_unit, 1),
                "confidence": round(float((np.diff(found.floor) > 0).mean()), SHARE_DIGITS),
                "live_bytes": int(found.floor[-1]),
                "row": None,
                "site": rising.line if rising is not None else recording.memory,
                "shape": "various",
            }
        )
    return {
        "message": None if found is not None else growth_message(recording),
        "retained_gradients": [],
        "unit": found.unit if found is not None else "step",
        "steps": len(found.floor) if found is not None else 0,
        "warm_up_steps": 0,
        "verdicts": {"leak" if findings else "steady": 1} if found is not None else {},
        "findings": findings,
    }


def _leaks(found: LeaksJson) -> LeakAnswerJson:
    reported = [one for one in found["findings"] if one["verdict"] in REPORTED_VERDICTS]
    return record(
        LeakAnswerJson,
        found,
        verdicts={name: count for name, count in found["verdicts"].items() if count},
        findings=[record(LeakLineJson, one, bytes_per_step=round(one["bytes_per_step"], 1)) for one in reported],
    )


def _rounded(value: Any) -> Any:
    """Round the shares of an answer: beside the bytes, more digits are of no use."""
    if isinstance(value, dict):
        rounded = {key: _rounded(item) for key, item in value.items()}
        return rounded | ({"share": round(value["share"], SHARE_DIGITS)} if "share" in value else {})
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _questions(
    recording: Recording, others: Sequence[Recording], found: ExplainedMoment, asked: Asked
) -> list[Question | None]:
    has_advice = "advice" in found and bool(found["advice"]["advice"])
    own, at = recording.id, {} if found["at"]["peak"] else {"at": f"#{found['at']['position']}"}
    if recording.kind.is_sampled:
        why = "who holds the memory, by the newest snapshot of this run"
        return [asked.question("explain", why, taken.id) for taken in snapshots_of(recording, others)[-1:]]
    timed = next((r for r in others if r.axis is Axis.TIME and r.run == recording.run and r is not recording), None)
    failed = [program["id"] for program in found["failed_program"]["programs"][:1]] if "failed_program" in found else []
    return [
        *(asked.question("explain", "the program that did not fit, with its buffers", program) for program in failed),
        asked.question("advice", "how to lower the peak: sentences and code", own) if has_advice else None,
        asked.question("buffers", "the largest buffers, one by one", own, **at) if len(recording.allocations) else None,
        asked.question("explain", "the memory of this run over time, with leaks", timed.id)
        if timed is not None and recording.axis is not Axis.TIME
        else None,
    ]
