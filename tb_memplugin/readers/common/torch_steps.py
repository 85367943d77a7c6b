"""Names of training-loop steps in PyTorch's files."""

from __future__ import annotations

import re

from tb_memplugin.model.kinds import SpanKind

STEP = re.compile(r"ProfilerStep#\d+|step[ #_:]*\d+", re.IGNORECASE)


def annotation_kind(name: str) -> SpanKind:
    """Return STEP for the profiler's own step annotations and names such as "step 3", else ANNOTATION."""
    return SpanKind.STEP if STEP.fullmatch(name) else SpanKind.ANNOTATION
