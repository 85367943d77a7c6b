"""One worker that is guided by coverage: libFuzzer, with Python's bytecode instrumented by atheris, keeps a corpus.

    python -m fuzz.guided SUBJECT SEED FIRST COUNT SECONDS STATE FAULTS CORPUS

The arguments are those of fuzz.worker. Inputs that reach new code are added to the corpus, which both draw from.
"""

from __future__ import annotations

import sys
from hashlib import sha1
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["tb_memplugin"]):
    from fuzz.mutators.plain import MAX_INPUT
    from fuzz.state import State
    from fuzz.subjects import subject
    from fuzz.trial import Trial

OWN_SHARE = 0.7  # of changes by our mutators, which know the format; the others are libFuzzer's


def main(name: str, seed: str, first: str, count: str, seconds: str, state: str, faults: str, corpus: str) -> None:
    tried = subject(name)
    known = list(tried.seeds())
    mutate = tried.mutator(known)
    for data in known:
        Path(corpus, sha1(data).hexdigest()).write_bytes(data)
    trial = Trial(tried, State(Path(state)), Path(faults), int(first))
    for data in known:
        trial.subject.attempt(data, False)
    trial.limit_memory()

    def change(data: bytes, max_size: int, number: int) -> bytes:
        rng = Random(number)
        changed = mutate(data, rng) if rng.random() < OWN_SHARE else atheris.Mutate(data, max_size)
        return bytes(changed[:max_size])

    options = {"seed": int(seed) + 1, "runs": count, "max_total_time": seconds, "max_len": MAX_INPUT, "timeout": 3600}
    # The fault handler of Python names the function that an input ends in.
    options |= {f"handle_{name}": 0 for name in ("segv", "bus", "abrt", "ill", "fpe", "int", "term", "xfsz")}
    options |= {"rss_limit_mb": 0, "print_final_stats": 1}
    arguments = [sys.argv[0], *(f"-{name}={value}" for name, value in options.items()), corpus]
    atheris.Setup(arguments, trial.run, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
