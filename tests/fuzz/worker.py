"""One worker: tries the inputs of a subject with numbers from FIRST, each made from its number alone.

python -m fuzz.worker SUBJECT SEED FIRST COUNT SECONDS STATE FAULTS [CORPUS]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

from fuzz.state import State
from fuzz.subjects import subject
from fuzz.trial import Trial


def main(name: str, seed: str, first: str, count: str, seconds: str, state: str, faults: str, corpus: str = "") -> None:
    tried = subject(name)
    known = list(tried.seeds())
    mutate = tried.mutator(known)
    kept = [path.read_bytes() for path in sorted(Path(corpus).iterdir())] if corpus else []
    sources = [*known, *kept]
    trial = Trial(tried, State(Path(state)), Path(faults), int(first))
    for data in known:
        trial.subject.attempt(data, False)
    trial.limit_memory()
    end = time.monotonic() + float(seconds)
    for number in range(int(first), int(first) + int(count)):
        rng = Random(f"{name} {seed} {number}")
        trial.run(mutate(rng.choice(sources), rng))
        if not number & 63 and time.monotonic() > end:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
