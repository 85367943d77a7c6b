"""Enumerations of the model: axes, roles, kinds of regions and of spans."""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum


class Axis(StrEnum):
    """The meaning of a position."""

    PROGRAM_ORDER = "PROGRAM_ORDER"  # index into the flattened schedule
    TIME = "TIME"  # index into the recording's events, sorted by time; `clock` has their times in nanoseconds
    INSTANT = "INSTANT"  # a single moment


class Role(IntEnum):
    """The purpose of an allocation, as its source states it. The page's payload contains these numbers."""

    UNKNOWN = 0
    PARAMETER = 1
    OPTIMIZER_STATE = 2
    INPUT = 3
    GRADIENT = 4
    ACTIVATION = 5
    OUTPUT = 6
    CONSTANT = 7
    TEMPORARY = 8
    EXECUTABLE = 9
    THREAD_LOCAL = 10
    STATE = 11  # passed from one call to the next and read by it, such as a key/value cache or a hidden state


class RegionKind(IntFlag):
    """Reasons why a region is persistent, that is, live during the whole program. None of them: it is temporary."""

    TEMPORARY = 0
    PARAMETER = 1
    OUTPUT = 2
    CONSTANT = 4
    THREAD_LOCAL = 8

    @property
    def label(self) -> str:
        names = [kind.name.lower() for kind in RegionKind if kind & self and kind.name]
        return ", ".join(names) or "temporary"


class SpanKind(IntEnum):
    """The kind of a named interval. The page's payload contains these numbers."""

    STEP = 0
    EXECUTION = 1  # of a compiled program
    ANNOTATION = 2
    OUT_OF_MEMORY = 3  # a moment
