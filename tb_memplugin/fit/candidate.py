"""A candidate of a fit, the target and the values of the knobs, and the outcome of compiling it."""

from __future__ import annotations

from dataclasses import dataclass

from tb_memplugin.fit.targets import Target

Knob = int | float | str | bool


@dataclass(frozen=True)
class Candidate:
    """A step of the user's with values of its knobs, for a target."""

    step: str
    target: Target
    knobs: tuple[tuple[str, Knob], ...]


@dataclass(frozen=True)
class Outcome:
    """What compiling a candidate gave, in bytes per device; figures are None where it did not compile."""

    candidate: Candidate
    seconds: float
    reserved: int | None = None
    peak: int | None = None
    repeated: int = 0  # operations that the compiler runs twice to save memory
    error: str = ""
    traceback: str = ""  # of the user's own code
    folder: str = ""

    def fits(self, budget: int | None) -> bool:
        """Return whether the program fits: compilers compare what it reserves with the limit."""
        return self.reserved is not None and (budget is None or self.reserved <= budget)
