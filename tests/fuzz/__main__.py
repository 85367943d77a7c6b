"""The long form of fuzzing: every subject in turn, until the time is over.

    python -m fuzz --minutes 60

The folder build/fuzz keeps the corpus, the faults, and the counts of inputs by commit. Numbers of inputs go on from run
to run, so that no input is tried twice.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from fuzz import sanitizers
from fuzz.campaign import Campaign, Statistics
from fuzz.faults import found_in
from fuzz.subjects import SUBJECTS
from support.servers import REPOSITORY

SLICE_SECONDS, GUIDED_SECONDS = 60.0, 120.0  # a guided worker takes ten seconds to start
SEED = 2  # that of ordinary test runs is 1
UNLIMITED = 1 << 40
Counts = dict[str, Any]


class Record:
    """The counts of inputs, by state of the code and by subject, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counts = json.loads(path.read_text()) if path.exists() else {"next": {}, "states": {}}

    def next_number(self, name: str) -> int:
        return int(self.counts["next"].get(name, 0))

    def add(self, state: str, name: str, found: Statistics) -> None:
        counts = self.counts["states"].setdefault(state, {}).setdefault(name, {"tried": 0, "seconds": 0.0})
        for key in ("tried", "answered", "faults", "ended", "seconds"):
            counts[key] = counts.get(key, 0) + getattr(found, key)
        counts["slowest"] = max(counts.get("slowest", 0), found.slowest)
        self.counts["next"][name] = self.next_number(name) + found.tried
        self.path.write_text(json.dumps(self.counts, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "fuzz")
    parser.add_argument("--sanitize", action="store_true", help="run the compiled modules under ASan and UBSan")
    parser.add_argument("--plain", action="store_true", help="without coverage, which atheris measures")
    parser.add_argument("--processes", type=int, default=1, help="workers at a time, each of another subject")
    parser.add_argument("subjects", nargs="*", help="all without any")
    options = parser.parse_args()
    names = [one.name for one in SUBJECTS if not options.subjects or one.name in options.subjects]
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    record, state = Record(folder / "counts.json"), code_state()
    environment: Mapping[str, str] = {}
    if options.sanitize:
        sanitizers.build()
        environment, state = sanitizers.environment(), f"{state}, sanitized"
    guided = not options.plain and not options.sanitize and find_spec("atheris") is not None
    print(f"{len(names)} subjects at {state}, {'with' if guided else 'without'} coverage", flush=True)
    turns = Turns(names, folder, record, state, guided, environment, time.monotonic() + 60 * options.minutes)
    with ThreadPoolExecutor(options.processes) as pool:
        for done in [pool.submit(turns.take_turns) for _ in range(options.processes)]:
            done.result()
    return summarize(record, state, folder / "faults")


@dataclass
class Turns:
    """The turns of subjects, which threads take until the time is over: each waits for one worker."""

    names: Sequence[str]
    folder: Path
    record: Record
    state: str
    guided: bool
    environment: Mapping[str, str]
    end: float
    turn: int = 0
    lock: Lock = field(default_factory=Lock)

    def take_turns(self) -> None:
        while (left := self.end - time.monotonic()) > 1:
            with self.lock:
                turn, self.turn = self.turn, self.turn + 1
            self._take(turn, left)

    def _take(self, turn: int, left: float) -> None:
        name, each = self.names[turn % len(self.names)], turn // len(self.names)
        # Every other round is of the mutation harness alone, which tries more inputs in the same time.
        module, longest = (
            ("fuzz.guided", GUIDED_SECONDS) if self.guided and each % 2 else ("fuzz.worker", SLICE_SECONDS)
        )
        corpus = self.folder / "corpus" / name
        corpus.mkdir(parents=True, exist_ok=True)
        campaign = Campaign(self.folder / "faults", module, self.environment)
        first = self.record.next_number(name)
        found = campaign.run(name, SEED, first, UNLIMITED, min(left, longest), str(corpus))
        with self.lock:
            self.record.add(self.state, name, found)
            print(describe(name, module, found), flush=True)


def describe(name: str, module: str, found: Statistics) -> str:
    rate = found.tried / max(found.seconds, 0.1)
    counts = f"{found.tried:8} inputs, {rate:6.0f}/s, {found.faults} faults, slowest {found.slowest:.2f} s"
    return f"{module:12} {name:15} {counts}"


def summarize(record: Record, state: str, faults: Path) -> int:
    """Print the table of counts, and the faults. Return the exit code."""
    counts = record.counts["states"].get(state, {})
    print(f"\n| format | inputs | readable | faults |\n|---|--:|--:|--:|\n{table(counts)}")
    texts = [f"{fault.path}\n{fault.text}" for folder in sorted(faults.glob("*")) for fault in found_in(folder)]
    print("\n\n".join(texts) if texts else "no faults")
    return 1 if any(found["faults"] for found in counts.values()) else 0


def table(counts: Counts) -> str:
    """Return the rows of a Markdown table: inputs, those with something readable, and faults."""
    rows = {name: [int(found[key]) for key in ("tried", "answered", "faults")] for name, found in counts.items()}
    rows["total"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return "\n".join(f"| {name} | {' | '.join(f'{count:,}' for count in row)} |" for name, row in rows.items())


def code_state() -> str:
    """Return the commit of the code, marked where files are changed."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
