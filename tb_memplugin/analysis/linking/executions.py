"""The executions of compiled programs that a profile records."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.source_tables import NamedSpans

PROGRAM_TITLE = re.compile(r"(?:jit_|pmap_)?(.+?)\(\d+\)")


def count_runs(recordings: Sequence[Recording]) -> dict[str, int] | None:
    """Return the number of executions of each program or jitted function of a host; None if none are recorded."""
    counts: dict[str, int] = {}
    for allocator in recordings:
        if allocator.kind.runs_programs and allocator.spans is not None:
            for name, count in _count_executions(allocator.spans).items():
                counts[name] = max(counts.get(name, 0), count)  # allocators repeat their host's executions
    return counts or None


def run_count(title: str, runs: dict[str, int] | None) -> int | None:
    """Return a program's number of runs. Device events name the program; host events only name the function."""
    if runs is None:
        return None
    named = PROGRAM_TITLE.fullmatch(title)
    return runs.get(title) or runs.get(named[1] if named else title, 0)


def _count_executions(spans: NamedSpans) -> dict[str, int]:
    counts: dict[str, int] = {}
    executions = np.flatnonzero(spans.kind == SpanKind.EXECUTION)
    codes = spans.name.codes[executions]
    for code in np.unique(codes).tolist():
        of = executions[codes == code]
        # A call within a call of the same name is part of it. Spans are in order of their starts.
        reach = np.maximum.accumulate(spans.end_ns[of])
        counts[spans.name.strings[code] if code >= 0 else ""] = 1 + int((spans.start_ns[of][1:] >= reach[:-1]).sum())
    return counts
