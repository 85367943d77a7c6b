"""Memory budgets: the recordings that exceed one, each with an explanation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tb_memplugin.analysis.oom import required_bytes
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted
from tb_memplugin.views.shared.summary import summary
from tb_memplugin.views.terminal.explain import explain
from tb_memplugin.views.terminal.explain_text import lines

EXPLANATION_LINES = 12  # enough to show the largest roles and model paths


def budget(recordings: Sequence[Recording], limit: int, chosen: re.Pattern[str]) -> dict[str, Any]:
    """Check recordings against a limit in bytes; return those above it, worst first, in JSON-compatible values.

    The need of an out-of-memory failure is the memory in use plus the failed request.
    """
    checked = [recording for recording in recordings if chosen.search(recording.id)]
    above = sorted((r for r in checked if required_bytes(r) > limit), key=required_bytes, reverse=True)
    return {
        "limit_bytes": limit,
        "checked": [{"id": recording.id, "needed_bytes": required_bytes(recording)} for recording in checked],
        "broken": [
            {
                **summary(recording.outline),
                "needed_bytes": required_bytes(recording),
                "above_bytes": required_bytes(recording) - limit,
                "explanation": list(lines(explain(recording)))[:EXPLANATION_LINES],
            }
            for recording in above
        ],
    }


def budget_lines(answer: dict[str, Any]) -> Iterator[str]:
    """Format the answer of `budget` as lines of text."""
    broken, count, limit = answer["broken"], len(answer["checked"]), bytes_text(answer["limit_bytes"])
    if not broken:
        worst = max(checked["needed_bytes"] for checked in answer["checked"])
        yield f"Within {limit}: {counted(count, 'recording')} checked, the largest needs {bytes_text(worst)}."
    for found in broken:
        above, needs = bytes_text(found["above_bytes"]), bytes_text(found["needed_bytes"])
        yield f"Above {limit} by {above}: {found['id']} needs {needs}"
        yield ""
        yield from (f"    {line}".rstrip() for line in found["explanation"])
        yield ""
    if broken:
        yield f"{len(broken):,} of {counted(count, 'recording')} {agree(len(broken), 'is', 'are')} above {limit}."
