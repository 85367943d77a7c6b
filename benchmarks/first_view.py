"""Seconds and memory of one file's first views in this process, and where the time goes.

    python -m benchmarks.first_view FILE [--warm-up SMALL_FILE] [--profile]

Imports, and what runs for the first time, are not counted where a small file is read first. The table of all tools,
with servers and imports, is that of benchmarks.rivals.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import process_bytes
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.kinds.device_profile import device_profile
from tb_memplugin.questions.kinds.first_view import first_view


class FirstView(NamedTuple):
    """The cost of the first views of all recordings of a file."""

    reading: float  # seconds
    views: float  # seconds
    processor: float  # seconds of all threads
    memory: int  # largest growth of the process in bytes
    answer: int  # bytes


def _device_profile(recording: Recording) -> bytes:
    return json.dumps(device_profile(recording, [recording])).encode()


VIEWS: Mapping[Axis, Callable[[Recording], bytes]] = {
    Axis.PROGRAM_ORDER: first_view,
    Axis.TIME: first_view,
    Axis.INSTANT: _device_profile,
}


def first_views(file: Path) -> FirstView:
    before, worked, start = process_bytes("VmRSS"), time.process_time(), time.perf_counter()
    recordings = listing_of_path(str(file)).recordings
    read = time.perf_counter()
    answer = sum(len(VIEWS[recording.axis](recording)) for recording in recordings)
    end = time.perf_counter()
    growth = process_bytes("VmHWM") - before
    return FirstView(read - start, end - read, time.process_time() - worked, growth, answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--warm-up", type=Path)
    parser.add_argument("--profile", action="store_true", help="print the functions that took the most time")
    options = parser.parse_args()
    if options.warm_up:
        first_views(options.warm_up)
    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    figures = first_views(options.file)
    profile.disable()
    print(json.dumps(figures._asdict()))
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    main()
