"""Time of `fit`: of one candidate, and of the question for the largest batch, against whole compilations.

    python -m benchmarks.fit [--step examples/transformer.py:step] [--on v5e:4x4] [--set model=4] [--high 1024]

Needs jax 0.12 with libtpu, or a CPU or GPU target. Each candidate is compiled in a new process without the cache, in
turns: until its memory is assigned, and to the end. For the largest value of 1 to --high, `fit` is compared with
bisecting by whole compilations, as MaxText's estimator does. The target is a tenth of the time, 12 compilations, and
less than 10 % of the time in this package.
"""

import argparse
import tempfile
import threading
import time
from concurrent.futures import wait
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import ratio, spread
from tb_memplugin.executors import LocalThreads
from tb_memplugin.fit.compile_task import CompileTask, Limits
from tb_memplugin.fit.compiling.compiler import CompileOptions, open_sweep
from tb_memplugin.fit.compiling.compiling import compile_task
from tb_memplugin.fit.compiling.program_memory import with_memory
from tb_memplugin.fit.knobs import parse_fixed, parse_varied
from tb_memplugin.fit.step.step_file import find_step
from tb_memplugin.model.fit import Candidate, Knobs, LargestValue, Outcome
from tb_memplugin.readers.hlo import read_hlo

LIMITS = Limits(seconds=3600)
NEVER = threading.Event()  # which would end a compilation


@dataclass(frozen=True)
class Question:
    """A step for a target, and the values of a knob to search."""

    step: str
    target: str
    fixed: Knobs
    knob: str
    low: int
    high: int
    every: int

    def task(self, value: int, to_end: bool = False) -> CompileTask:
        candidate = Candidate(self.step, self.target, (*self.fixed, (self.knob, value)))
        return CompileTask(candidate, LIMITS, uses_cache=False, to_end=to_end)


def per_candidate(question: Question, value: int, rounds: int) -> None:
    """Compile a candidate in turns until its memory is assigned, and to the end."""
    early, whole, reading = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        compiled = compile_task(question.task(value), NEVER)
        early.append(compiled.outcome.seconds)
        content = next(data for name, data in compiled.files.items() if name.endswith("after_optimizations.hlo.pb"))
        start = time.perf_counter()
        program = next(one for one in read_hlo(content, source="") if one.is_main_memory)
        with_memory(compiled.outcome, program, content)
        reading.append(time.perf_counter() - start)
        whole.append(compile_task(question.task(value, to_end=True), NEVER).outcome.seconds)
    print(f"  one candidate      {spread(early)}, compiled to the end {spread(whole)}: {ratio(early, whole):.1f} times")
    share = max(a / b for a, b in zip(reading, early, strict=True))
    print(f"  reading its memory {spread(reading)}, {share:.1%} of the time at most")


def whole_question(question: Question) -> None:
    """Search the largest value, and bisect by whole compilations."""
    start = time.perf_counter()
    answer, outcomes = search(question, jobs=1)
    ours = time.perf_counter() - start
    inside = sum(outcome.seconds for outcome in outcomes)
    print(f"  largest {question.knob:11}{answer.value} in {ours:.1f} s, {len(outcomes)} compilations")
    print(f"  between them       {1 - inside / ours:.1%} of the time")
    start = time.perf_counter()
    value, compilations = bisect(question)
    theirs = time.perf_counter() - start
    print(f"  bisecting          {value} in {theirs:.1f} s, {compilations} compilations: {theirs / ours:.1f} times")


def search(question: Question, jobs: int) -> tuple[LargestValue, list[Outcome]]:
    """Return the answer of `fit`, and all that it compiled."""
    step = find_step(question.step)
    varied = [parse_varied(f"{question.knob}={question.low}:{question.high}:{question.every}", question.low)]
    options = CompileOptions(LIMITS, jobs, uses_cache=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_sweep(
            step, [question.target], varied, question.fixed, Path(folder), NEVER, options, proves=False
        ) as sweep,
    ):
        (answer,) = sweep.run()
        return answer, sweep.outcomes


def bisect(question: Question) -> tuple[int | None, int]:
    """Return the largest value by whole compilations, if memory rises with it, and the number of compilations."""
    values, compilations = range(question.low, question.high + 1, question.every), 0
    low, high = -1, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        outcome = compile_task(question.task(values[middle], to_end=True), NEVER).outcome
        fits = not outcome.refused and (outcome.reserved_bytes or 0) <= (outcome.capacity_bytes or 1 << 62)
        low, high = (middle, high) if fits and not outcome.error else (low, middle)
        compilations += 1
    return (values[low] if low >= 0 else None), compilations


def jobs(question: Question, values: list[int]) -> None:
    """Compile the same candidates one at a time, and two."""
    seconds = list[float]()
    for number in (1, 2):
        executor, start = LocalThreads(number), time.perf_counter()
        wait([executor.submit(compile_task, question.task(value), NEVER) for value in values])
        seconds.append(time.perf_counter() - start)
        executor.stop()
    print(f"  {len(values)} candidates       {seconds[0]:.1f} s, with two jobs {seconds[1]:.1f} s: ", end="")
    print(f"{seconds[0] / seconds[1]:.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", default="examples/transformer.py:step")
    parser.add_argument("--on", default="v5e:4x4")
    parser.add_argument("--set", action="append", default=[], dest="fixed")
    parser.add_argument("--knob", default="batch")
    parser.add_argument("--low", type=int, default=4)
    parser.add_argument("--high", type=int, default=1024)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    words = parser.parse_args()
    fixed = tuple(map(parse_fixed, words.fixed))
    question = Question(words.step, words.on, fixed, words.knob, words.low, words.high, words.every)
    print(f"{words.step} on {words.on}, {words.knob} of {words.low} to {words.high} in steps of {words.every}")
    per_candidate(question, words.low * 4, words.rounds)
    jobs(question, [words.low * n for n in range(1, 7)])
    whole_question(question)


if __name__ == "__main__":
    main()
