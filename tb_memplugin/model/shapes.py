"""Shapes as XLA prints them: `f32[4,512]{1,0:T(8,128)}`."""

from __future__ import annotations

import re

ARRAY = re.compile(r"\w+\[(\d[\d,]{0,200})\]")
MAX_DIGITS = 15  # of a dimension; a longer number is damage


def dimensions(shape: str) -> list[int]:
    """Return the dimensions of an array's shape; none for a scalar or a tuple."""
    found = ARRAY.match(shape)
    return [int(number) for number in found[1].split(",") if 0 < len(number) <= MAX_DIGITS] if found else []
