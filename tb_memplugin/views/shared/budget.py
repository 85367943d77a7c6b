"""Which recordings need more memory than a budget allows, and what of them is largest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tb_memplugin.analysis.oom import required_bytes
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.shared.summary import summary
from tb_memplugin.views.terminal.explain import explain
from tb_memplugin.views.terminal.explain_text import lines

EXPLAINED = 12  # lines of the explanation: enough to see whose the bytes are


def budget(recordings: Sequence[Recording], limit: int, chosen: re.Pattern[str]) -> dict[str, Any]:
    """Plain values: what was checked, and what is above `limit` bytes, worst first, each with its explanation.

    Of an error, what counts is what would have had to fit: what was in use, and what was asked on top.
    """
    checked = [recording for recording in recordings if chosen.search(recording.id)]
    above = sorted((r for r in checked if required_bytes(r) > limit), key=required_bytes, reverse=True)
    return {
        "limit_bytes": limit,
        "checked": [{"id": recording.id, "needed_bytes": required_bytes(recording)} for recording in checked],
        "broken": [
            {
                **summary(recording),
                "needed_bytes": required_bytes(recording),
                "above_bytes": required_bytes(recording) - limit,
                "explanation": list(lines(explain(recording)))[:EXPLAINED],
            }
            for recording in above
        ],
    }


def verdict(answer: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    broken, count, limit = answer["broken"], len(answer["checked"]), bytes_text(answer["limit_bytes"])
    if not broken:
        worst = max(checked["needed_bytes"] for checked in answer["checked"])
        yield f"Within {limit}: {count} checked, the largest needs {bytes_text(worst)}."
    for found in broken:
        above, needs = bytes_text(found["above_bytes"]), bytes_text(found["needed_bytes"])
        yield f"Above {limit} by {above}: {found['id']} needs {needs}"
        yield ""
        yield from (f"    {line}".rstrip() for line in found["explanation"])
        yield ""
    if broken:
        yield f"{len(broken)} of {count} recordings {'is' if len(broken) == 1 else 'are'} above {limit}."
