"""The generated profile of the Memory Profile benchmark: its stated contents, and that XProf can read it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.allocator_planes import events_of, read

from benchmarks.generate_events import generate
from benchmarks.timing import python
from tb_memplugin.analysis.usage.live_bytes import count_stacks, peak


def test_the_truth_is_what_is_read() -> None:
    space, truth = generate(2200, 200)
    (recording,) = read(space.planes[0])
    assert sum(len(line.events) for line in space.planes[0].lines) == truth.events == 2200
    assert recording.length == truth.allocator_events == 200
    assert peak(recording).bytes == truth.peak_bytes > 0
    assert recording.caveats == ()
    told = count_stacks(recording)
    assert told.with_stack == told.allocations and told.frees_with_stack == told.frees > 0


def test_the_same_numbers_give_the_same_bytes() -> None:
    first, again = (generate(500, 50)[0].SerializeToString(deterministic=True) for _ in range(2))
    assert first == again


def test_without_allocator_events() -> None:
    space, truth = generate(100, 0)
    assert (truth.events, truth.allocator_events) == (100, 0)
    assert read(space.planes[0]) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process's memory")
def test_the_first_view_takes_less_memory_than_three_files(tmp_path: Path) -> None:
    """Measure resident memory as the benchmark does."""
    small, large = tmp_path / "small.xplane.pb", tmp_path / "large.xplane.pb"
    small.write_bytes(generate(100, 10)[0].SerializeToString())
    large.write_bytes(generate(440_000, 40_000)[0].SerializeToString())
    command = ("-m", "benchmarks.first_view", str(large), "--warm-up", str(small))
    figures = json.loads(subprocess.run(python(*command), capture_output=True, check=True).stdout)
    size = large.stat().st_size
    assert figures["answer"] > 0
    assert size < figures["memory"] < 3 * size


def test_xprof_finds_the_same_peak(tmp_path: Path) -> None:
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    space, truth = generate(2200, 200)
    path = tmp_path / "localhost.xplane.pb"
    path.write_bytes(space.SerializeToString())
    answer = json.loads(convert.xspace_to_tool_data([str(path)], "memory_profile", {})[0])
    (allocator,) = answer["memoryProfilePerAllocator"].values()
    assert int(allocator["profileSummary"]["peakStats"]["peakBytesInUse"]) == truth.peak_bytes
    assert {memory: len(events) for memory, events in events_of(path).items()} == {"GPU_0_bfc": 200}
