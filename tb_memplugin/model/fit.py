"""Candidates of a fit, and what compiling each gave.

A candidate is a user's step with values of its knobs, compiled for a target. Its outcome is kept beside the compiled
program as `fit.json`, of the same keys as `tb-memplugin fit --json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Knob = int | float | str | bool
RECORD = "fit.json"


@dataclass(frozen=True)
class Candidate:
    """A step with values of its knobs, for a target."""

    step: str  # FILE.py:FUNCTION, or MODULE:FUNCTION
    target: str  # as in v5e:4x4
    knobs: tuple[tuple[str, Knob], ...] = ()
    changes: tuple[str, ...] = ()  # made to the program before it is compiled, to try advice


@dataclass(frozen=True)
class PeakPart:
    """A part of the memory at the peak, such as the activations of some layers."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Outcome:
    """What compiling a candidate gave, in bytes per device; sizes are None where there is no program."""

    candidate: Candidate
    seconds: float = 0.0
    reserved_bytes: int | None = None  # what compilers compare with the limit
    peak_bytes: int | None = None
    capacity_bytes: int | None = None  # of the target, for programs; None where the host's memory is the limit
    limit_bytes: int | None = None  # the budget, else the capacity
    rematerialized: int = 0  # instructions that the compiler runs twice by itself
    rematerialized_flops: float = 0.0  # their share of the program's floating-point operations
    roles: Mapping[str, int] = field(default_factory=dict)  # bytes at the peak by role
    parts: tuple[PeakPart, ...] = ()  # the largest parts of the peak, largest first
    searched: str = ""  # the knob whose largest value is searched
    run: str = ""  # name in the logdir
    error: str = ""
    traceback: str = ""  # of the user's own code
    versions: Mapping[str, str] = field(default_factory=dict)  # jax, jaxlib, and libtpu or the CUDA plugin
    caveats: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Return whether the program fits: compilers compare what it reserves with the limit."""
        return self.reserved_bytes is not None and (self.limit_bytes is None or self.reserved_bytes <= self.limit_bytes)


@dataclass(frozen=True)
class LargestValue:
    """The largest value of a searched knob that fits. Without a search it is the candidate itself, if it fits."""

    target: str
    knobs: tuple[tuple[str, Knob], ...]  # other than the searched one
    searched: str  # "" without a search
    largest: Outcome | None  # None if no value fits
    last: Outcome  # the one to explain: the largest, else the one that failed
    without_recomputation: int | None = None  # the largest value before the compiler runs instructions twice

    @property
    def value(self) -> Knob | None:
        return dict(self.largest.candidate.knobs).get(self.searched) if self.largest is not None else None
