"""Advice against the compiler: what a piece of advice promises, and what the changed program saves when compiled.

    python -m programs.scoreboard [NAME ...] [--target TARGET ...] [--cache FOLDER] [--missed]

prints one line for each piece of advice that the program can carry out, with the ratio of promised to real. NAME may
contain `*`. `--missed` also carries out changes that no advice asks for, and prints those that save 5 % of the peak.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from programs.case import CaseBuilder, Knobs
from programs.compile import compile_case
from programs.corpus import PROGRAMS

from tb_memplugin.analysis.advice import Advice, advise
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.hlo import read_hlo

MIB = 2**20
CLOSE = (0.8, 1.25)  # of promised to real
MISSED_SHARE = 20  # of the peak


@dataclass(frozen=True)
class Outcome:
    """A piece of advice, and the peak of the main memory before and after it was followed, in bytes."""

    program: str
    target: str
    kind: str
    title: str
    place: int  # in the list of advice, from 1
    promised: int
    at_least: int
    at_most: int
    before: int
    after: int

    @property
    def real(self) -> int:
        return self.before - self.after

    @property
    def ratio(self) -> float:
        return self.promised / self.real if self.real else float("inf")

    @property
    def good(self) -> bool:
        """Return whether the promise is close, or is a range that contains the real saving."""
        return CLOSE[0] <= self.ratio <= CLOSE[1] or (self.at_least <= self.real <= self.at_most and self.real > 0)

    def __str__(self) -> str:
        span = f"{self.at_least / MIB:.0f}-{self.at_most / MIB:.0f}" if self.at_least < self.at_most else ""
        return (
            f"{self.program:26} {self.target:6} {' ' if self.good else '*'}{self.ratio:6.2f}  promised "
            f"{self.promised / MIB:8.1f} {span:>12} real {self.real / MIB:8.1f} of {self.before / MIB:8.1f} MiB  "
            f"{self.place}. {self.title}"
        )


def main_memory(proto: bytes) -> Recording:
    """Return the recording of the device's main memory."""
    return next(recording for recording in read_hlo(proto, source="compiled") if recording.memory == "HBM")


def compiled(name: str, target: str, folder: Path, knobs: Knobs) -> Recording:
    """Return a compiled program's main memory, from the folder if it was compiled before."""
    code = hashlib.sha1(json.dumps(dict(knobs), sort_keys=True).encode()).hexdigest()[:10]
    kept = folder / f"{name}-{target}-{code}.hlo.pb"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as dump:
            kept.write_bytes(compile_case(name, target, Path(dump), **knobs).proto)
    return main_memory(kept.read_bytes())


def knobs_for(builder: CaseBuilder, piece: Advice) -> Knobs | None:
    named = (k for name, k in builder.changes.items() if name == str(piece.kind) or piece.title.startswith(name))
    return next(named, None)


def outcomes(builder: CaseBuilder, target: str, folder: Path, missed: bool = False) -> Iterator[Outcome]:
    """Yield the outcome of each piece of advice that the program has a change for, and print the other pieces."""
    name, compile_with = builder.name, partial(compiled, builder.name, target, folder)
    base, tried = compile_with({}), []
    for place, piece in enumerate(advise(base), 1):
        knobs = knobs_for(builder, piece)
        if knobs is None:
            print(f"{name:26} {target:6}    not tried: {piece.saving_bytes / MIB:8.1f} MiB  {place}. {piece.title}")
            continue
        tried.append(knobs)
        after, saving = peak(compile_with(knobs)).bytes, piece.saving
        low, high = saving.at_least, saving.at_most
        yield Outcome(
            name, target, str(piece.kind), piece.title, place, saving.expected, low, high, peak(base).bytes, after
        )
    for title, knobs in builder.changes.items() if missed else ():
        if knobs not in tried:
            real = peak(base).bytes - peak(compile_with(knobs)).bytes
            if MISSED_SHARE * real >= peak(base).bytes:
                print(f"{name:26} {target:6}    missed: real {real / MIB:8.1f} MiB  {title}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["*"], help="programs; all without one")
    parser.add_argument("--target", action="append", help="only these of each program's targets")
    parser.add_argument(
        "--cache", type=Path, help="folder to keep compiled programs in; delete it when programs change"
    )
    parser.add_argument("--missed", action="store_true", help="also try changes that no advice asks for")
    parser.add_argument("--kind", action="append", help="print only these kinds of advice")
    chosen = parser.parse_args()
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.cache or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        names = [n for n, b in PROGRAMS.items() if b.changes and any(fnmatch(n, pattern) for pattern in chosen.names)]
        for name in names:
            for target in PROGRAMS[name].targets:
                if chosen.target and target not in chosen.target:
                    continue
                for outcome in outcomes(PROGRAMS[name], target, folder, chosen.missed):
                    if not chosen.kind or outcome.kind in chosen.kind:
                        print(outcome, flush=True)
                        found.append(outcome)
    print_summary(found)


def print_summary(found: list[Outcome]) -> None:
    for kind in sorted({outcome.kind for outcome in found}):
        of_kind = [outcome for outcome in found if outcome.kind == kind]
        none = sum(outcome.real <= 0 for outcome in of_kind)
        print(f"{kind}: {sum(o.good for o in of_kind)} of {len(of_kind)} hold; {none} save nothing")
    print(f"{sum(outcome.good for outcome in found)} of {len(found)} within {CLOSE[0]}-{CLOSE[1]}, or in their range")


if __name__ == "__main__":
    main()
