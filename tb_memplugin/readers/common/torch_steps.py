"""What PyTorch's files call the steps of a training loop."""

from __future__ import annotations

import re

from tb_memplugin.model.kinds import SpanKind

STEP = re.compile(r"ProfilerStep#\d+|step[ #_:]*\d+", re.IGNORECASE)


def kind_of_mark(name: str) -> SpanKind:
    return SpanKind.STEP if STEP.fullmatch(name) else SpanKind.ANNOTATION
