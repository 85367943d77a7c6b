"""Comparisons of pairs of recordings, at the moments that the arguments of a command name."""

from __future__ import annotations

from collections.abc import Sequence

from tb_memplugin.analysis.isolate import Failed, failure
from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.page.compare import CompareBy, ComparisonJson, Pair, compared, pairs
from tb_memplugin.views.shared.change_json import CauseJson, causes_between
from tb_memplugin.views.shared.json_types import ProblemJson, problems_json
from tb_memplugin.views.terminal.selectors import position_of

MAX_IDS_LISTED = 5


def matched_pairs(paths: Sequence[str], recordings: Sequence[Sequence[Recording]], wanted: str) -> list[Pair]:
    """Return the pairs of the recordings of two paths whose ids contain a text. InputError where there is none."""
    sides = []
    for path, every in zip(paths, recordings, strict=True):
        chosen = [recording for recording in every if wanted in recording.id]
        if not chosen:
            what = "No such recording" if every else "No recordings to compare"
            raise InputError(what, wanted or path, f"`tb-memplugin summary {path}` lists the recordings")
        sides.append(chosen)
    if matched := pairs(sides[0], sides[1]):
        return matched
    ids = "; ".join(", ".join(r.id for r in side[:MAX_IDS_LISTED]) for side in sides)
    raise InputError("No recording is in both", " and ".join(paths), f"choose one with --recording: {ids}")


class ExplainedComparisonJson(ComparisonJson):
    """A comparison, and the causes of the change between the peaks of two programs."""

    causes: list[CauseJson]


def compared_pairs(
    matched: Sequence[Pair], at_a: str | None, at_b: str | None, by: str
) -> tuple[list[ExplainedComparisonJson], list[ProblemJson]]:
    """Return the comparison of each pair, and a problem for each pair that cannot be compared.

    InputError where a moment is none of its recording.
    """
    answers, failed = list[ExplainedComparisonJson](), list[Failed]()
    for pair in matched:
        try:
            moments = [position_of(r, at) if at else None for r, at in zip(pair, (at_a, at_b), strict=True)]
            causes = [] if at_a or at_b else causes_between(*pair)
            answers.append({**compared(*pair, moments[0], moments[1], CompareBy(by)), "causes": causes})
        except InputError:
            raise
        except Exception as error:
            failed.append(failure(pair[1], error))
    return answers, problems_json(failed)
