"""The rows of the table: the profile of each, and the request to each tool."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import cold_server
from benchmarks.cold_server import OURS, XPROF, XPROF_RS
from benchmarks.profiles import demo_step, events, program, samples, snapshot
from benchmarks.timing import BIN, Cost, cost_of, python, tree_bytes

HERE, RS, RS_TIMELINE, CPP, PICKLE = "tb_memplugin", "xprof-rs", "xprof-rs, timeline only", "XProf", "pickle.load"

Measure = Callable[[Path], Cost]


class Work(NamedTuple):
    """One row of the table."""

    name: str
    write: partial[None]  # the profile, as a logdir
    tools: Mapping[str, Measure]


def _first_views() -> dict[str, Measure]:
    return {HERE: partial(OURS.measure, view=cold_server.our_first_views)}


def _first_picture(logdir: Path) -> Cost:
    """Measure the picture by age. The memory is the server's."""
    from benchmarks.timeline_frames import first_image, opened  # they need a browser

    started, state = time.perf_counter(), "#full=true&tab=memory_profile&layout=age"
    with OURS.running(logdir) as (client, pid), opened(f"{client.address}/{state}") as page:
        return Cost(time.perf_counter() - started, first_image(page), tree_bytes(pid), 0)


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
    "summary": Work("`summary` of a small step, whole process", partial(demo_step), SUMMARY),
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
    "first-picture": Work(
        "First picture of 1,000,000 allocations in the page",
        partial(events, 2_000_000, 2_000_000),  # an allocation and its free are two events
        {HERE: _first_picture},
    ),
    "snapshot-1m": Work("PyTorch snapshot, 1M events", partial(snapshot, 1_000_000), SNAPSHOT),
    "snapshot-4m": Work("PyTorch snapshot, 4M events", partial(snapshot, 4_000_000), SNAPSHOT),
    "samples": Work("device profile, 1M samples", partial(samples, 1_000_000), _first_views()),
}
