"""Runtime allocations linked to the planned memory of their program."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.recordings import Row, recording
from support.servers import DATA
from werkzeug.test import Client

from tb_memplugin.analysis.linking import link_to_programs, running_intervals, running_programs
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.model.kinds import RecordingKind, RegionKind, SpanKind
from tb_memplugin.model.program import PROGRAM_FRAMES
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans, Regions, Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.questions.kinds.joins import joins

KINDS = [(1000, RegionKind.TEMPORARY), (512, RegionKind.OUTPUT), (256, RegionKind.THREAD_LOCAL)]


def allocator(sizes: list[int], functions: list[str], frame: str = PROGRAM_FRAMES[0]) -> Recording:
    made = recording([Row(size, i, 9) for i, size in enumerate(sizes)], 9)
    stacks = Stacks(np.array([-1, 0], np.int32), Text.of([frame, "inner"]), Text.of(["", ""]), np.zeros(2, np.int32))
    rows = dataclasses.replace(made.allocations, op_name=Text.of(functions), stack=np.zeros(len(sizes), dtype=np.int32))
    return dataclasses.replace(made, kind=RecordingKind.ALLOCATOR, allocations=rows, stacks=stacks)


def test_joined_by_function_and_size_rounded_up() -> None:
    program = recording([], 1, KINDS)  # jit_f(1)
    joined = link_to_programs(allocator([1024, 512, 768, 512], ["f", "f", "f", "g"]), [program])
    assert joined.program.tolist() == [0, 0, -1, -1]
    assert joined.region.tolist() == [0, 1, -1, -1]
    assert joined.executable.sum() == 4


def test_thread_locals_are_never_allocated_so() -> None:
    assert link_to_programs(allocator([256], ["f"]), [recording([], 1, KINDS)]).program.tolist() == [-1]


def test_other_allocations_are_not_an_executables() -> None:
    joined = link_to_programs(allocator([1024], ["f"], frame="DevicePut"), [recording([], 1, KINDS)])
    assert (joined.executable.tolist(), joined.program.tolist()) == ([False], [-1])


@pytest.mark.parametrize(
    ("profile", "count"), [("tracelens_mi300_conv_minimal_08", 80), ("tracelens_te_fused_attn", 30)]
)
def test_all_executable_allocations_of_real_gpu_profiles_are_joined(profile: str, count: int) -> None:
    if not DATA.is_dir():
        pytest.skip("the real profiles are not beside the repository")
    recordings = listing_of_path(str(DATA / "xplane" / profile)).recordings
    programs = [r for r in recordings if r.kind == "program"]
    joined = [link_to_programs(r, programs) for r in recordings if r.kind == "allocator"]
    assert sum(int(j.executable.sum()) for j in joined) == count
    assert sum(int((j.program >= 0).sum()) for j in joined) == count


def test_frames_inside_the_one_that_builds_belong_to_it() -> None:
    made = allocator([1024, 1024], ["f", "f"], frame=PROGRAM_FRAMES[1])
    rows = dataclasses.replace(made.allocations, stack=np.array([1, -1], dtype=np.int32))
    joined = link_to_programs(dataclasses.replace(made, allocations=rows), [recording([], 1, KINDS)])
    assert (joined.executable.tolist(), joined.program.tolist()) == ([True, False], [0, -1])


def test_all_outputs_of_a_real_tpu_profile_are_joined() -> None:
    """Check that each allocation is found by its frame, and has the size of an output of that frame's program."""
    if not DATA.is_dir():
        pytest.skip("the real profiles are not beside the repository")
    recordings = listing_of_path(str(DATA / "xplane" / "xprof_tpu_inference_2_old")).recordings
    programs = [r for r in recordings if r.kind == "program"]
    count = 0
    for allocated in (r for r in recordings if r.kind == "allocator"):
        joined = link_to_programs(allocated, programs)
        rows = np.flatnonzero(joined.program >= 0)
        assert len(rows) == joined.executable.sum() > 0
        count += len(rows)
        for row in rows.tolist():
            program = programs[joined.program[row]]
            region = joined.region[row]
            assert program.title.startswith(f"jit_{allocated.allocations.op_name[row]}(")
            assert program.regions.size[region] == allocated.allocations.requested[row]
            assert program.regions.kind[region] & RegionKind.OUTPUT
    assert count == 14


def test_a_program_without_regions() -> None:
    nothing = dataclasses.replace(recording([], 1), regions=recording([], 1, KINDS).regions)
    empty = dataclasses.replace(
        nothing, regions=Regions(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))
    )
    assert link_to_programs(allocator([1024], ["f"]), [empty, nothing]).program.tolist() == [1]


@pytest.mark.parametrize("profile", ["tracelens_mi300_conv_minimal_08", "xprof_tpu_inference_2_old"])
def test_what_runs_and_what_is_not_joined_over_http(profile: str) -> None:
    if not DATA.is_dir():
        pytest.skip("the real profiles are not beside the repository")
    catalog = Catalog(str(DATA / "xplane" / profile))
    listing = catalog.listing_of_run(catalog.runs()[0])
    allocated = next(r for r in listing.recordings if r.kind == "allocator")
    clock, spans = allocated.clock, allocated.spans
    assert clock is not None and spans is not None
    client = Client(MemoryApp(catalog))
    for at in (0, allocated.length // 2, allocated.length - 1):
        answer = client.get("/api/joins", query_string={"id": allocated.id, "at": at}).json
        assert answer is not None
        inside = [
            spans.name[i]
            for i in range(len(spans))
            if spans.kind[i] == SpanKind.EXECUTION and spans.start_ns[i] <= clock[at] < spans.end_ns[i]
        ]
        titles = {program["title"] for program in answer["programs"] if program["running"]}
        assert titles == {
            r.title
            for r in listing.recordings
            if r.kind == "program" and (r.title in inside or r.title.removeprefix("jit_").partition("(")[0] in inside)
        }
        assert answer["unjoined"] == {"allocations": 0, "bytes": 0}
        assert sum(program["bytes"] for program in answer["programs"]) == answer["executable"]["bytes"] > 0


def test_a_program_of_several_memories_that_runs_is_one() -> None:
    made = dataclasses.replace(
        recording([], 1),
        clock=np.array([5]),
        spans=NamedSpans(Text.of(["f"]), np.array([SpanKind.EXECUTION], np.uint8), np.array([0]), np.array([9])),
    )
    memories = [dataclasses.replace(recording([], 1), title="jit_f(1)", memory=name) for name in ("HBM", "Host")]
    assert [(program["memory"], program["running"]) for program in joins(made, memories, 0)["programs"]] == [
        ("HBM", True)
    ]


def test_what_is_not_joined_is_counted() -> None:
    answer = joins(allocator([1024, 512, 768], ["f", "g", "f"]), [recording([], 1, KINDS)], 0)
    assert answer["executable"] == {"allocations": 3, "bytes": 2304}
    assert answer["unjoined"] == {"allocations": 2, "bytes": 1280}
    (program,) = answer["programs"]
    assert (program["title"], program["allocations"], program["running"]) == ("jit_f(1)", 1, False)


@pytest.mark.parametrize("seed", range(20))
def test_what_runs_over_the_axis_is_what_runs_at_each_position(seed: int) -> None:
    """Use executions that overlap, touch, have zero length, or are named after the program or its function."""
    random = np.random.default_rng(seed)
    made = dataclasses.replace(recording([], 12), clock=np.sort(random.integers(0, 30, 12)))
    programs = [dataclasses.replace(recording([], 1), title=f"jit_{name}({i})") for i, name in enumerate("fgfh")]
    count = int(random.integers(0, 9))
    spans = NamedSpans(
        Text.of(random.choice(["f", "jit_f(0)", "g", "jit_g(1)", "other"], count).tolist()),
        random.choice([SpanKind.EXECUTION, SpanKind.STEP], count, p=[0.8, 0.2]).astype(np.uint8),
        random.integers(-5, 30, count),
        random.integers(-5, 40, count),
    )
    made = dataclasses.replace(made, spans=spans)
    stretches = dict(running_intervals(made, programs))
    assert min(stretches) == -1
    for position in range(-1, 12):
        last = max(start for start in stretches if start <= position)
        assert stretches[last] == running_programs(made, programs, position)


def test_without_a_clock_nothing_is_known_to_run() -> None:
    assert running_intervals(recording([], 3), [recording([], 1)]) == [(-1, [])]
