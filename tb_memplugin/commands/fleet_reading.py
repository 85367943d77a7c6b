"""Reading the captures of logdirs, for the commands `fleet` and `check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tb_memplugin.errors import InputError

if TYPE_CHECKING:
    from tb_memplugin.executors.executor import TaskExecutor
    from tb_memplugin.fleet.scan import Scan
    from tb_memplugin.fleet.sessions import Capture
    from tb_memplugin.model.fleet import Fleet

JOIN_SECONDS = 60  # as fleet/sessions.py: TOLERANCE_SECONDS; commands import what they need when they run


def scan_options(parser: argparse._ActionsContainer) -> None:
    """Add the options about how files are read, which `fleet` and `check` have in common."""
    parser.add_argument(
        "--join-within",
        metavar="SECONDS",
        type=float,
        default=JOIN_SECONDS,
        help="longest pause between two sessions of one capture (default: %(default)s)",
    )

    parser.add_argument(
        "--numbered-files",
        metavar="HOW",
        choices=("auto", "series", "hosts"),  # as model/fleet.py: NumberedFiles
        default="auto",
        help="files whose names differ in numbers only: a series of one process, or a file for each of several hosts "
        "(default: auto, by their devices, steps, times and bytes)",
    )


def reading_options(parser: argparse._ActionsContainer) -> None:
    """Add the options about who reads the files; `check` has options of these names for compiling."""
    parser.add_argument("--jobs", type=int, help="files to read at a time (default: as many as cores)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="read on a dask cluster, such as tcp://host:8786")
    parser.add_argument("--no-cache", action="store_true", help="read again what is in the cache")


@contextmanager
def open_scan(arguments: argparse.Namespace) -> Iterator[tuple[Scan, list[Capture]]]:
    """Yield a scan, which starts processes when it needs them, and the captures of the logdirs, newest first."""
    from tb_memplugin.executors.dask_cluster import DaskCluster
    from tb_memplugin.executors.processes import LocalProcesses
    from tb_memplugin.fleet.cache import SummaryCache
    from tb_memplugin.fleet.scan import Scan
    from tb_memplugin.fleet.sessions import captures
    from tb_memplugin.logdir import find_runs
    from tb_memplugin.model.fleet import NumberedFiles

    opened: list[TaskExecutor] = []

    def executor() -> TaskExecutor:
        if not opened:
            opened.append(DaskCluster(arguments.scheduler) if arguments.scheduler else LocalProcesses(arguments.jobs))
        return opened[0]

    if arguments.jobs is not None and arguments.jobs < 1:
        raise InputError("No process", "--jobs", "give a number from 1 up")
    runs = [run for logdir in dict.fromkeys(arguments.logdirs) for run in find_runs(logdir)]
    try:
        cache = None if arguments.no_cache else SummaryCache()
        numbered = NumberedFiles(arguments.numbered_files)
        yield Scan(executor, cache, numbered), captures(runs, arguments.join_within)
    finally:
        for each in opened:
            each.stop()


def choose(arguments: argparse.Namespace, found: Sequence[Capture]) -> Sequence[Capture]:
    """Return the captures that are asked for. InputError where there is none."""
    if arguments.all:
        return found
    if arguments.capture is None:
        return found[:1]
    named = [capture for capture in found if any(arguments.capture in session.name for session in capture.sessions)]
    if not named:
        some = ", ".join(capture.name for capture in found[:5])
        raise InputError("No such capture", arguments.capture, f"the newest are {some}")
    return named[:1]


def read(scan: Scan, captures: Sequence[Capture], quiet: bool) -> list[Fleet]:
    """Read captures, with progress on standard error."""
    from tb_memplugin.views.terminal.fleet_progress import FleetProgress

    with FleetProgress(sys.stderr, quiet) as progress:
        return scan.fleets(captures, progress.done)
