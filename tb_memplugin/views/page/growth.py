"""Growth over a series of device profiles: how much each call site has in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from tb_memplugin.analysis.isolate import usable
from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_snapshots import Growth, find_series, growth
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.endpoint import InReport, endpoint
from tb_memplugin.views.endpoints.inputs import RECORDING, SAME_RUN
from tb_memplugin.views.page.device_profile import has_call_graph
from tb_memplugin.views.page.leaks import NAMES, VerdictName, sentence
from tb_memplugin.views.shared.headlines import leaking
from tb_memplugin.views.shared.site_text import line_text, source_text

MAX_SITES = 100


class GrowthPointJson(TypedDict):
    """One profile of a series."""

    id: str
    title: str
    host: str
    step: int | None
    time_ns: int | None
    bytes: int


class GrowthSiteJson(TypedDict):
    """A call site; `curve` has its bytes in each profile. Without a verdict, both texts are null."""

    site: str
    verdict: VerdictName | None
    sentence: str | None
    bytes_per_profile: float
    confidence: float
    allocations: int
    curve: list[int]


class GrowthJson(TypedDict):
    """A series of profiles, in order, and the call sites that grow, leaks first."""

    message: str | None
    """The reason for having no verdicts; null with verdicts."""
    headline: str | None
    """The line that leaks fastest; null without a leak."""
    points: list[GrowthPointJson]
    sites: list[GrowthSiteJson]
    rest: list[int]
    """Bytes of all other sites together, in each profile."""


@endpoint("growth", RECORDING, SAME_RUN, report=InReport(has_call_graph))
def series(recording: Recording, recordings: Sequence[Recording]) -> GrowthJson:
    """Return the series of `recording`: a point for each profile, and its call sites, leaks first."""
    profiles, _ = usable(find_series(recording, recordings), growth)
    found = growth(profiles)
    sites = found.leaks.sites
    shown = range(min(MAX_SITES, len(found.holder))) if sites is not None else range(0)
    rest = sites.live[len(shown) :].sum(axis=0).tolist() if sites is not None else []
    return {
        "message": found.leaks.steps.message or None,
        "headline": leaking(found.leaks, _lines(found)) or None,
        "points": [
            {
                "id": point.id,
                "title": point.title,
                "host": point.host,
                "step": point.capture_info.step if point.capture_info else None,
                "time_ns": point.capture_info.time_ns if point.capture_info else None,
                "bytes": int(total),
            }
            for point, total in zip(found.series, found.total.tolist(), strict=True)
        ],
        "sites": [
            {
                "site": _site(found.series[int(found.holder[i])], int(sites.row[i])),
                "verdict": NAMES[Verdict(int(sites.verdict[i]))] if not found.leaks.steps.message else None,
                "sentence": sentence(found.leaks, sites, i) if not found.leaks.steps.message else None,
                "bytes_per_profile": float(sites.bytes_per_step[i]),
                "confidence": round(float(sites.confidence[i]), 4),
                "allocations": int(sites.allocations[i]),
                "curve": sites.live[i].tolist(),
            }
            for i in shown
            if sites is not None
        ],
        "rest": rest,
    }


def _lines(found: Growth) -> list[str]:
    if found.leaks.sites is None:
        return []
    rows = found.leaks.sites.row[:MAX_SITES].tolist()
    return [
        line_text(found.series[holder], row)
        for holder, row in zip(found.holder[:MAX_SITES].tolist(), rows, strict=True)
    ]


def _site(recording: Recording, row: int) -> str:
    what, source = recording.allocations.name[row], source_text(recording, row)
    return " in ".join(part for part in (what if what != "buffer" else "", source) if part) or "no Python line"
