"""Cost of tb_memplugin.capture.track in a training script, per array that is new, kept or freed.

    python -m benchmarks.capture_cost [--rounds 5]

Times are medians in microseconds, in a profile that does not trace Python, and without a profile.
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


def microseconds_of(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e6


def measure(rounds: int) -> dict[str, float]:
    increment, tracker = jax.jit(lambda x: x + 1), Tracker()
    one = increment(jnp.float32(0))
    costs: dict[str, list[float]] = {"new": [], "kept": [], "freed": []}
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as scratch, jax.profiler.trace(scratch, profiler_options=options):
        tracker.mark()
        for _ in range(rounds):
            kept = [increment(one) for _ in range(ARRAYS)]
            costs["new"].append(microseconds_of(tracker.mark) / ARRAYS)
            costs["kept"].append(microseconds_of(tracker.mark) / ARRAYS)
            del kept
            costs["freed"].append(microseconds_of(tracker.mark) / ARRAYS)
    costs["mark without a profile"] = [microseconds_of(tracker.mark) for _ in range(rounds)]
    return {name: statistics.median(samples) for name, samples in costs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    for name, cost in measure(parser.parse_args().rounds).items():
        print(f"  {name:28}{cost:8.2f} us")


if __name__ == "__main__":
    main()
