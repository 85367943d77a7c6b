"""Leak findings: one for each allocation site, with a verdict, a sentence and the numbers behind it."""

from typing import Literal, TypedDict, get_args

import numpy as np

from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_steps import EVENTS, Leaks, LeakSites, leaks
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import InReport, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING, RECORDINGS
from tb_memplugin.questions.asking.json_types import SiteJson
from tb_memplugin.questions.asking.source import Recordings
from tb_memplugin.questions.kinds.memory_profile import retained_gradients_sentences
from tb_memplugin.questions.kinds.watched import growth_message
from tb_memplugin.questions.recording.sites import leaking, line_text, site
from tb_memplugin.sizes import bytes_text, percent_text

MAX_FINDINGS = 200
CURVE_POINTS = 64  # of the small chart of a finding
VerdictName = Literal["leak", "cache that stopped growing", "sawtooth", "kept one step", "warm-up", "steady"]
NAMES: dict[Verdict, VerdictName] = dict(zip(Verdict, get_args(VerdictName), strict=True))  # in the same order


class SiteVerdictJson(TypedDict):
    """The verdict on an allocation site over steps."""

    verdict: VerdictName
    """`leak` or `kept one step`."""
    sentence: str
    """The verdict with its evidence."""
    bytes_per_step: float
    """The growth."""
    confidence: float
    """From 0 to 1."""
    live_bytes: int
    """The bytes of the allocations that are live at the end."""


class FindingJson(SiteJson, SiteVerdictJson):
    """The memory of one allocation site over steps. Sites with several shapes have no size."""

    evidence_steps: int
    survived_steps: float
    freed_later_share: float
    allocations: int
    curve: list[int]
    """Live bytes at each of `curve_steps`."""


class GrowthOverStepsJson(TypedDict):
    """Growth from step to step."""

    message: str | None
    """The reason why there are no findings."""
    retained_gradients: list[str]
    """Sentences about gradients that survive into the next step."""
    unit: str
    """The unit of growth: `step`, a run of a program, or `1,000 events` of a recording without either."""
    steps: int
    """The number of steps, or of equal parts of a recording without steps."""
    warm_up_steps: int
    """The first steps, which are left out."""
    verdicts: dict[VerdictName, int]
    """The number of sites per verdict that has any."""


class LeaksJson(GrowthOverStepsJson):
    """Leak findings, the fastest growth first. Without any, `message` may be the source of the steps."""

    within_step: int
    sites_left_out: int
    curve_steps: list[int]
    findings: list[FindingJson]


@endpoint("leaks", RECORDING, RECORDINGS, report=InReport(lambda recording: recording.axis is Axis.TIME))
def findings(recording: Recording, source: Recordings | None = None) -> LeaksJson:
    """Return the findings. `message` explains why there are none, or what the steps are derived from.

    `source` has the snapshots of a curve, whose lines the message names.
    """
    found = leaks(recording)
    sites = found.sites
    shown = range(min(MAX_FINDINGS, len(sites.row))) if sites is not None else range(0)
    verdicts = sites.verdict if sites is not None else np.empty(0, np.uint8)
    counts = np.bincount(verdicts, minlength=len(Verdict)).tolist()
    points = np.unique(np.linspace(0, max(len(found.sampled_steps) - 1, 0), CURVE_POINTS).round().astype(np.int64))
    return {
        "message": growth_message(recording, source) if recording.kind.is_sampled else found.steps.message or None,
        "retained_gradients": retained_gradients_sentences(recording),
        "unit": found.steps.unit,
        # Samples contain no allocations, so sites are not followed over steps.
        "steps": 0 if recording.kind.is_sampled else len(found.steps.position),
        "warm_up_steps": found.warm_up,
        "within_step": found.within_step,
        "sites_left_out": found.left_out,
        "verdicts": {NAMES[verdict]: counts[verdict] for verdict in Verdict},
        "curve_steps": found.sampled_steps[points].tolist() if sites is not None else [],
        "findings": [_finding(recording, found, sites, i, points) for i in shown if sites is not None],
    }


def headline(recording: Recording) -> str:
    """Return a sentence about the line that leaks fastest; empty without a leak."""
    found = leaks(recording)
    rows = found.sites.row[:MAX_FINDINGS].tolist() if found.sites is not None else []
    return leaking(found, [line_text(recording, row) for row in rows])


def _finding(recording: Recording, found: Leaks, sites: LeakSites, i: int, points: I64) -> FindingJson:
    finding: FindingJson = {
        "verdict": NAMES[Verdict(int(sites.verdict[i]))],
        "sentence": sentence(found, sites, i),
        "bytes_per_step": float(sites.bytes_per_step[i]),
        "confidence": round(float(sites.confidence[i]), 4),
        "evidence_steps": int(sites.evidence[i]),
        "survived_steps": float(sites.survived[i]),
        "freed_later_share": round(float(sites.freed_later[i]), 4),
        "allocations": int(sites.allocations[i]),
        "live_bytes": int(sites.live[i, -1]),
        "curve": sites.live[i, points].tolist(),
        **site(recording, int(sites.row[i])),
    }
    if not sites.sized[i]:
        finding["shape"], finding["dtype"], finding["size"] = "various", "", None
    return finding


SENTENCES = {
    Verdict.LEAK: (
        "Grows by {rate} per {unit}: it grew in {evidence:,} of the {measured:,} {units} after the warm-up, "
        "has {held} at the end, and shows no sign of stopping.{later}"
    ),
    Verdict.CACHE: "Grew to {held} after the warm-up, and has not grown in the last {evidence:,} {units}.",
    Verdict.SAWTOOTH: "Accumulates up to {most} over several {units}, then frees it; this happened {times}.",
    Verdict.KEPT: (
        "Memory that one {unit} allocates here is freed in the next one, so {most} of the previous {unit} is "
        "still live. Typical causes are parameters that are not donated and gradients that are not cleared."
    ),
    Verdict.WARM_UP: "Has {held} since the warm-up, unchanged in the {evidence:,} {units} after it.",
    Verdict.STEADY: "Does not grow: {held} at the end, at most {most} between {units}.",
}


def sentence(found: Leaks, sites: LeakSites, i: int) -> str:
    """Return the verdict in a sentence, with its numbers."""
    unit, evidence, freed = found.steps.unit, int(sites.evidence[i]), float(sites.freed_later[i])
    lagging = f" {percent_text(freed)} of that was freed after the last {unit}: the loop may only be lagging."
    return SENTENCES[Verdict(int(sites.verdict[i]))].format(
        unit=unit,
        units=several(unit),
        evidence=evidence,
        times="once" if evidence == 1 else f"{evidence:,} times",
        measured=len(found.steps.position) - found.warm_up,
        rate=bytes_text(round(float(sites.bytes_per_step[i]))),
        held=bytes_text(int(sites.live[i, -1])),
        most=bytes_text(int(sites.live[i].max())),
        later=lagging if freed >= 0.005 else "",
    )


def several(unit: str) -> str:
    """Return the plural of a unit: `steps`, `runs of jit_f`, or what a recording without steps is measured in."""
    if unit == EVENTS:
        return "parts of the recording"
    return unit.replace("run", "runs", 1) if unit.startswith("run ") else f"{unit}s"
