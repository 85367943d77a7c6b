"""The moment at which a recording was captured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """When a snapshot was taken or a recording over time began, if the file contains that."""

    time_ns: int | None = None  # since 1970
    step: int | None = None  # of the training loop
