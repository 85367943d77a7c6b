"""The moment at which a recording was captured, and the intervals of one that is sampled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """Time and step of a snapshot, or of the start of a recording over time, if the file has them."""

    time_ns: int | None = None  # since 1970
    step: int | None = None  # of the training loop
    reason: str = ""  # for a snapshot, such as "90 % of capacity"; empty: the script asked for it


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a recording over time is sampled, and whether its writer has finished it."""

    interval_ns: int  # between the newest samples
    finished: bool  # False while the job runs, and after it was killed
