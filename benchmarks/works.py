"""The rows of the table: the profile of each, and the request to each tool."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import cold_server, device_profile, generate_events, generate_snapshot
from benchmarks import generate as generate_program
from benchmarks.cold_server import OURS, XPROF, XPROF_RS
from benchmarks.timing import BIN, Cost, cost_of, python

DEMO_RUN = Path(__file__).parent.parent / "demo_logdir/train_step"
HERE, RS, RS_TIMELINE, CPP, PICKLE = "tb_memplugin", "xprof-rs", "xprof-rs, timeline only", "XProf", "pickle.load"

Measure = Callable[[Path], Cost]


class Work(NamedTuple):
    """One row of the table."""

    name: str
    write: Callable[[Path], None]  # the profile, as a logdir
    tools: Mapping[str, Measure]


def events(events: int, of_allocators: int, logdir: Path) -> None:
    space, _ = generate_events.generate(events, of_allocators)
    _put(logdir, "plugins/profile/cpu/localhost.xplane.pb", space.SerializeToString())


def program(buffers: int, logdir: Path) -> None:
    generate_program.write(logdir, buffers)


def snapshot(events: int, logdir: Path) -> None:
    logdir.mkdir(parents=True, exist_ok=True)
    generate_snapshot.generate(logdir / "snapshot.pickle", events)


def samples(count: int, logdir: Path) -> None:
    _put(logdir, "memory.prof", gzip.compress(device_profile.generate(count).SerializeToString(), 6))


def demo_step(logdir: Path) -> None:
    shutil.copytree(DEMO_RUN, logdir, dirs_exist_ok=True)


def _put(logdir: Path, name: str, content: bytes) -> None:
    (logdir / name).parent.mkdir(parents=True, exist_ok=True)
    (logdir / name).write_bytes(content)


def _first_views() -> dict[str, Measure]:
    return {HERE: partial(OURS.measure, view=cold_server.our_first_views)}


MEMORY_PROFILE: dict[str, Measure] = {
    CPP: partial(XPROF.measure, view=cold_server.xprof_memory_profile),
    RS: partial(XPROF_RS.measure, view=cold_server.xprof_memory_profile),
    **_first_views(),
}
MEMORY_VIEWER: dict[str, Measure] = {
    CPP: partial(XPROF.measure, view=cold_server.xprof_memory_viewer),
    RS: partial(XPROF_RS.measure, view=cold_server.xprof_memory_viewer),
    RS_TIMELINE: partial(XPROF_RS.measure, view=cold_server.xprof_timeline),
    **_first_views(),
}
# xprof-rs has no commands: its server is started, and ended after its answer.
SUMMARY: dict[str, Measure] = {
    CPP: lambda logdir: cost_of([str(BIN / "xprof"), "get_peak_allocations", "cpu", f"--logdir={logdir}"]),
    RS: lambda logdir: _whole(XPROF_RS.measure(logdir, cold_server.xprof_memory_viewer)),
    HERE: lambda logdir: cost_of([str(BIN / "tb-memplugin"), "summary", str(logdir)]),
}
SNAPSHOT: dict[str, Measure] = {
    PICKLE: lambda logdir: cost_of(
        python("-c", "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))", str(logdir / "snapshot.pickle"))
    ),
    **_first_views(),
}


def _whole(cost: Cost) -> Cost:
    return cost._replace(answer=cost.whole)


WORKS = {
    "events": Work(
        "Memory Profile, 2.2M events, 200k of allocators", partial(events, 2_200_000, 200_000), MEMORY_PROFILE
    ),
    "program-100k": Work("Memory Viewer, 100,000 buffers", partial(program, 100_000), MEMORY_VIEWER),
    "program-500k": Work("Memory Viewer, 500,000 buffers", partial(program, 500_000), MEMORY_VIEWER),
    "summary": Work("`summary` of a small step, whole process", demo_step, SUMMARY),
    "overview-rows": Work(
        "Overview of 500,000 buffers: rows",
        partial(program, 500_000),
        {HERE: partial(OURS.measure, view=cold_server.our_overview_rows)},
    ),
    "overview": Work(
        "Overview of 500,000 buffers: with advice",
        partial(program, 500_000),
        {HERE: partial(OURS.measure, view=cold_server.our_overview)},
    ),
    "snapshot-1m": Work("PyTorch snapshot, 1M events", partial(snapshot, 1_000_000), SNAPSHOT),
    "snapshot-4m": Work("PyTorch snapshot, 4M events", partial(snapshot, 4_000_000), SNAPSHOT),
    "samples": Work("device profile, 1M samples", partial(samples, 1_000_000), _first_views()),
}
