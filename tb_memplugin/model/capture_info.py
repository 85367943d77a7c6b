"""The moment at which a recording was captured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """Time and step of a snapshot, or of the start of a recording over time, if the file has them."""

    time_ns: int | None = None  # since 1970
    step: int | None = None  # of the training loop
