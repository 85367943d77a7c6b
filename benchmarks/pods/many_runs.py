"""Logdirs of many runs, which have the same files by links."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from benchmarks.pods.pod import SESSION, START, Pod
from benchmarks.pods.truth import Capture

MINUTES = 15  # between two runs


def write_runs(pod: Pod, logdir: Path, count: int) -> Capture:
    """Write `<logdir>/run<n>/plugins/profile/<session>/<host>.xplane.pb` for each run; return the truth of any run.

    Only the files of the first run take disk space.
    """
    capture = pod.write(logdir, "run00000")
    files = [path for path in (logdir / capture.run).rglob("*") if path.is_file()]
    for number in range(1, count):
        session = (START + timedelta(minutes=MINUTES * number)).strftime(SESSION)
        folder = logdir / f"run{number:05}" / "plugins" / "profile" / session
        folder.mkdir(parents=True)
        for file in files:
            os.link(file, folder / file.name)
    return capture
