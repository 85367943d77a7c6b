"""Advice for the stored programs, against what XLA reserves once it is followed.

    python -m programs.stored_advice [NAME ...]

prints a line for each piece of advice whose change is stored: what it promises, and how many bytes fewer XLA reserves
in the main memory. A star marks a promise that is not kept.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from programs.stored import Stored, stored_programs

from tb_memplugin.analysis.advice import Advice, advise

MIB = 2**20
CLOSE = (0.8, 1.25)  # of promised to real


@dataclass(frozen=True)
class Promise:
    """A piece of advice for a stored program, with the bytes that XLA reserves fewer when it is followed."""

    stored: Stored
    title: str
    promised: int
    at_least: int
    at_most: int
    real: int

    @property
    def kept(self) -> bool:
        """Return whether the promise is close, or is a range that contains the real saving."""
        low, high = CLOSE
        return self.real > 0 and (
            low * self.real <= self.promised <= high * self.real or self.at_least <= self.real <= self.at_most
        )

    def __str__(self) -> str:
        return (
            f"{self.stored!s:36} {'  ' if self.kept else '* '}promised {self.promised / MIB:8.1f} "
            f"real {self.real / MIB:8.1f} MiB  {self.title}"
        )


def promises(stored: Stored) -> Iterator[Promise]:
    """Yield the advice whose change is stored, once for each change: the piece that is listed first."""
    main = next(r for r in stored.recordings if r.program is not None and r.program.memory_space == 0)
    seen = set()
    for piece in advise(main):
        name = next((name for name in stored.facts["changes"] if carries_out(name, piece)), None)
        if name is not None and name not in seen:
            seen.add(name)
            real = stored.facts["reserved"]["0"] - stored.facts["changes"][name]["reserved"]["0"]
            saving = piece.saving
            yield Promise(stored, piece.title, saving.expected, saving.at_least, saving.at_most, real)


def carries_out(name: str, piece: Advice) -> bool:
    """Return whether a change of this name is what a piece of advice suggests."""
    return name == str(piece.kind) or piece.title.startswith(name)


def main(*names: str) -> None:
    for stored in stored_programs():
        if stored.facts["changes"] and (not names or stored.name in names):
            for promise in promises(stored):
                print(promise, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
