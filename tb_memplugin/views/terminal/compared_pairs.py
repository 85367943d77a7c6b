"""Comparisons of pairs of recordings, at the moments that the arguments of a command name."""

from __future__ import annotations

from collections.abc import Sequence

from tb_memplugin.analysis.isolate import Failed, failure
from tb_memplugin.errors import InputError
from tb_memplugin.views.page.compare import CompareBy, ComparisonJson, Pair, compared
from tb_memplugin.views.shared.json_types import ProblemJson, problems_json
from tb_memplugin.views.terminal.selectors import position_of


def compared_pairs(
    matched: Sequence[Pair], at_a: str | None, at_b: str | None, by: str
) -> tuple[list[ComparisonJson], list[ProblemJson]]:
    """Return the comparison of each pair, and a problem for each pair that cannot be compared.

    InputError where a moment is none of its recording.
    """
    answers, failed = list[ComparisonJson](), list[Failed]()
    for pair in matched:
        try:
            moments = [position_of(r, at) if at else None for r, at in zip(pair, (at_a, at_b), strict=True)]
            answers.append(compared(*pair, moments[0], moments[1], CompareBy(by)))
        except InputError:
            raise
        except Exception as error:
            failed.append(failure(pair[1], error))
    return answers, problems_json(failed)
