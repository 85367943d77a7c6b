"""Comparisons of pairs of recordings, at the moments that the arguments of a command name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from tb_memplugin.analysis.changes.between import causes_between
from tb_memplugin.analysis.isolate import Failed, failure
from tb_memplugin.errors import InputError
from tb_memplugin.model.changes import ChangeCause
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.page.compare import CompareBy, ComparisonJson, Pair, compared, pairs
from tb_memplugin.views.shared.json_types import AboutFile, ProblemJson, problems_json
from tb_memplugin.views.shared.selectors import no_recordings, position_of

MAX_IDS_LISTED = 5


class Listed(Protocol):
    """The recordings of a path, and the problems of its files."""

    @property
    def recordings(self) -> Sequence[Recording]: ...
    @property
    def problems(self) -> Iterable[AboutFile]: ...


def matched_pairs(paths: Sequence[str], listed: Sequence[Listed], wanted: str) -> list[Pair]:
    """Return the pairs of the recordings of two paths whose ids contain a text. InputError where there is none."""
    sides = []
    for path, every in zip(paths, listed, strict=True):
        if not every.recordings:
            raise no_recordings(path, every.problems)
        chosen = [recording for recording in every.recordings if wanted in recording.id]
        if not chosen:
            ids = ", ".join(recording.id for recording in every.recordings[:MAX_IDS_LISTED])
            raise InputError("No such recording", wanted, f"give a part of an id of {path}: {ids}")
        sides.append(chosen)
    if matched := pairs(sides[0], sides[1]):
        return matched
    ids = "; ".join(", ".join(r.id for r in side[:MAX_IDS_LISTED]) for side in sides)
    raise InputError("No recording is in both", " and ".join(paths), f"give a text that ids of both contain: {ids}")


class ExplainedComparison(NamedTuple):
    """A comparison, and the causes of the change between the peaks of two programs, the largest first."""

    comparison: ComparisonJson
    causes: Sequence[ChangeCause]


def compared_pairs(
    matched: Sequence[Pair], at_a: str | None, at_b: str | None, by: str
) -> tuple[list[ExplainedComparison], list[ProblemJson]]:
    """Return the comparison of each pair, and a problem for each pair that cannot be compared.

    InputError where a moment is none of its recording.
    """
    found, failed = list[ExplainedComparison](), list[Failed]()
    for pair in matched:
        try:
            moments = [position_of(r, at) if at else None for r, at in zip(pair, (at_a, at_b), strict=True)]
            causes = [] if at_a or at_b else causes_between(*pair)
            found.append(ExplainedComparison(compared(*pair, moments[0], moments[1], CompareBy(by)), causes))
        except InputError:
            raise
        except Exception as error:
            failed.append(failure(pair[1], error))
    return found, problems_json(failed)
