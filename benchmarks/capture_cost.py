"""What tb_memplugin.capture.track costs a training script: per look, and per array that is new, stays or goes.

    python -m benchmarks.capture_cost [--rounds 5]

Times are medians, in microseconds, in a profile that does not trace Python, and without one.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from tb_memplugin.capture.live_arrays import Tracker

ARRAYS = 1000


def microseconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e6


def measure(rounds: int) -> dict[str, float]:
    increment, tracker = jax.jit(lambda x: x + 1), Tracker()
    one = increment(jnp.float32(0))
    found: dict[str, list[float]] = {"new": [], "stays": [], "goes": []}
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as scratch, jax.profiler.trace(scratch, profiler_options=options):
        tracker.mark()
        for _ in range(rounds):
            kept = [increment(one) for _ in range(ARRAYS)]
            found["new"].append(microseconds(tracker.mark) / ARRAYS)
            found["stays"].append(microseconds(tracker.mark) / ARRAYS)
            del kept
            found["goes"].append(microseconds(tracker.mark) / ARRAYS)
    found["a look without a profile"] = [microseconds(tracker.mark) for _ in range(rounds)]
    return {name: statistics.median(samples) for name, samples in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    for name, cost in measure(parser.parse_args().rounds).items():
        print(f"  {name:28}{cost:8.2f} us")


if __name__ == "__main__":
    main()
