"""Advice against the compiler: what a piece of advice promises, and what the changed program saves when compiled.

    python -m programs.scoreboard [NAME ...] [--target TARGET ...]

prints one line for each piece of advice whose kind the program can carry out, with the ratio of promised to real.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from programs.case import CaseBuilder
from programs.compile import compile_case
from programs.corpus import CORPUS

from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo

MIB = 2**20


@dataclass(frozen=True)
class Outcome:
    """A piece of advice, and the peak of the main memory before and after it was followed, in bytes."""

    program: str
    target: str
    title: str
    promised: int
    before: int
    after: int

    @property
    def real(self) -> int:
        return self.before - self.after

    @property
    def ratio(self) -> float:
        return self.promised / self.real if self.real else float("inf")

    def __str__(self) -> str:
        return (
            f"{self.program:26} {self.target:6} {self.ratio:6.2f}  promised {self.promised / MIB:8.1f} "
            f"real {self.real / MIB:8.1f} of {self.before / MIB:8.1f} MiB  {self.title}"
        )


def main_memory(proto: bytes) -> Recording:
    """Return the recording of the device's main memory."""
    return next(recording for recording in read_hlo(proto, source="compiled") if recording.memory == "HBM")


def outcomes(builder: CaseBuilder, target: str) -> Iterator[Outcome]:
    """Yield the outcome of each piece of advice that the program has a change for, and print the other pieces."""
    with tempfile.TemporaryDirectory() as folder:
        base = main_memory(compile_case(builder.name, target, Path(folder) / "base").proto)
        after: dict[str, int] = {}
        for piece in advise(base):
            kind = str(piece.kind)
            knobs = next((k for title, k in builder.changes.items() if title in (kind, piece.title)), None)
            if knobs is None:
                print(f"{builder.name:26} {target:6}    not tried: {piece.saving_bytes / MIB:8.1f} MiB  {piece.title}")
                continue
            if kind not in after:
                changed = compile_case(builder.name, target, Path(folder) / kind.replace(" ", "_"), **knobs)
                after[kind] = peak(main_memory(changed.proto)).bytes
            yield Outcome(builder.name, target, piece.title, piece.saving_bytes, peak(base).bytes, after[kind])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs of the corpus; all without one")
    parser.add_argument("--target", action="append", help="only these of each program's targets")
    chosen = parser.parse_args()
    found: list[Outcome] = []
    for name in chosen.names or CORPUS:
        for target in CORPUS[name].targets:
            if not chosen.target or target in chosen.target:
                for outcome in outcomes(CORPUS[name], target):
                    print(outcome, flush=True)
                    found.append(outcome)
    good = sum(0.8 <= outcome.ratio <= 1.25 for outcome in found)
    print(f"{good} of {len(found)} within 0.8-1.25 of the real saving")


if __name__ == "__main__":
    main()
