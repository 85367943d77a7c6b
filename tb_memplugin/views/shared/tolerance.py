"""Limits of growth: a percentage, or bytes."""

from __future__ import annotations

import re
from typing import NamedTuple

from tb_memplugin.errors import InputError
from tb_memplugin.sizes import parse_size

PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?%", re.ASCII)
TOLERANCE = "2%"


class Tolerance(NamedTuple):
    """A limit of growth, as a share of the figure before and in bytes."""

    text: str
    share: float
    bytes: int

    def allowed(self, before: int) -> int:
        """Return the largest figure that is allowed, in bytes."""
        return int(before * (1 + self.share)) + self.bytes


def parse_tolerance(text: str) -> Tolerance:
    """Parse a percentage such as `2%`, or a size such as `100MiB`. InputError for other texts."""
    if percent := PERCENT.fullmatch(text.strip()):
        return Tolerance(text, float(percent[1]) / 100, 0)
    try:
        return Tolerance(text, 0.0, parse_size(text))
    except InputError as error:
        raise InputError(
            "Not a size or percentage", text, "give a percentage, such as 2%, or a size, such as 100MiB"
        ) from error
