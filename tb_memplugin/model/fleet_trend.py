"""Peaks of a job's runs over days, and what raised them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tb_memplugin.model.changes import ChangeCause


class TrendBy(StrEnum):
    """What a point of a trend is."""

    DAY = "day"  # of several captures in a day, the one with the largest peak
    CAPTURE = "capture"


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The peak of one day or capture, in bytes: of a memory that of the median device, of a program its plan."""

    day: str  # as in 2026-11-23
    capture: str
    peak_bytes: int
    largest_bytes: int  # of a memory: the worst device; of a program: what it reserves
    devices: int  # of a program: the hosts that have it
    path: str  # of a file with this peak
    key: str  # of a memory: the device in the file; of a program: its fingerprint
    recording: str = ""  # its id


@dataclass(frozen=True, slots=True)
class TrendChange:
    """A line of the source whose bytes at the peak changed."""

    text: str
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class Rise:
    """A growth of the peak from one point to the next."""

    before: int  # index in the series
    after: int
    changes: tuple[TrendChange, ...] = ()  # largest growth first
    problem: str = ""  # why there are none
    causes: tuple[ChangeCause, ...] = ()  # of a program, largest growth first


@dataclass(frozen=True, slots=True)
class TrendSeries:
    """The peaks of a memory or of a program, in order of time, and the rises in it."""

    name: str
    is_program: bool
    points: tuple[TrendPoint, ...]
    rises: tuple[Rise, ...] = ()
