"""What capture.watch costs a job: the processor time of its thread, with few and with many live arrays.

python -m benchmarks.watch_cost --seconds 150
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import jax
import numpy as np

from tb_memplugin import capture

WARM_UP_SECONDS = 30  # imports, and the first samples
ARRAYS = 30, 20_000


def processor_seconds() -> float:
    """Return the processor time of the watching thread; Linux only."""
    [thread] = [thread for thread in threading.enumerate() if thread.name == "tb_memplugin watch"]
    return int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0]) / 1e9


def share(arrays: int, seconds: float) -> float:
    """Watch a job that steps 20 times a second, and return the share of one core after the warm-up."""
    kept = [jax.device_put(np.zeros(10)) for _ in range(arrays)]
    with tempfile.TemporaryDirectory() as logdir, capture.watch(logdir) as watched:
        began, number, before = time.monotonic(), 0, None
        while time.monotonic() < began + seconds:
            watched.step(number)
            number += 1
            time.sleep(0.05)
            if before is None and time.monotonic() > began + WARM_UP_SECONDS:
                before, since = processor_seconds(), time.monotonic()
        if before is None:
            raise SystemExit(f"--seconds must be above {WARM_UP_SECONDS}")
        found = (processor_seconds() - before) / (time.monotonic() - since)
    del kept
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=150)
    seconds = parser.parse_args().seconds
    for arrays in ARRAYS:
        print(f"{arrays:,} live arrays: {share(arrays, seconds):.3%} of a core")


if __name__ == "__main__":
    main()
