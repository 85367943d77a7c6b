"""Run MaxText's pre-training with its memory watched.

    python maxtext_train.py CONFIG.yml run_name=test base_output_directory=gs://bucket/runs

Not run in the project's tests: MaxText needs Python 3.12. The names are those of MaxText 0.2.5, whose training loop
calls the profiler at the beginning of each step.
"""

from __future__ import annotations

import os
from typing import Any

from absl import app
from maxtext.common import profiler
from maxtext.trainers.pre_train import train

from tb_memplugin import capture

LOGDIR = os.environ.get("MEMORY_LOGDIR", "/tmp/xprof")
watched = capture.watch(LOGDIR)


class MarkSteps(profiler.Profiler):
    """Marks each training step in the memory curve."""

    def maybe_activate_profiler(self, step: int, state: Any) -> None:
        watched.step(step)
        super().maybe_activate_profiler(step, state)


def main(argv: list[str]) -> None:
    profiler.Profiler = MarkSteps
    with watched:
        train.main(argv)


if __name__ == "__main__":
    app.run(main)
