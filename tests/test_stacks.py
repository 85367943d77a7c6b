"""The stack of every allocation and free of real profiles, found again in the plainest way: what encloses its event."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from allocator_planes import FREES, REAL, Log, recordings_of
from test_payload import decode

from tb_memplugin.analysis.traffic import stacked
from tb_memplugin.protos.xplane_pb2 import XSpace
from tb_memplugin.recording import Recording
from tb_memplugin.views.memory_viewer import details, rows

each_profile = pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)

# (allocations, with a stack, frees, with a stack), all memories of the profile together.
SHARES = {
    "tracelens_mi300_conv_minimal_08": (115, 115, 115, 75),
    "tracelens_te_fused_attn": (30, 30, 29, 10),
    "xprof_demo_gpu_multi_worker": (1859, 1368, 634, 401),
    "xprof_tpu_inference_2_old": (453, 453, 453, 421),
}


@cache
def complete(path: Path) -> list[Recording]:
    return [recording.complete for recording in recordings_of(path).values()]


@cache
def enclosing(path: Path) -> dict[tuple[int, bool], list[str]]:
    """By the nanosecond of an allocator event and whether it is a free: the events around it, innermost first."""
    found: dict[tuple[int, bool], list[str]] = {}
    for plane in XSpace.FromString(path.read_bytes()).planes:
        if plane.name != b"/host:CPU":
            continue
        names = {key: metadata.name.decode("utf-8", "replace") for key, metadata in plane.event_metadata.items()}
        began = min(line.timestamp_ns for line in plane.lines)
        for line in plane.lines:
            long = [e for e in line.events if e.duration_ps]
            for event in (e for e in line.events if names[e.metadata_id] in FREES):
                at = event.offset_ps
                around = [e for e in long if e.offset_ps <= at < e.offset_ps + e.duration_ps]
                around.sort(key=lambda e: (-e.offset_ps, e.duration_ps))
                time = line.timestamp_ns - began + at // 1000
                free = FREES[names[event.metadata_id]]
                assert (time, free) not in found
                found[time, free] = [names[e.metadata_id] for e in around]
    return found


def written(recording: Recording, leaf: int) -> list[str]:
    """A stack as the profile has it; a Python frame is one text there."""
    frames = recording.stacks.frames(leaf)
    return [f"${file}:{line} {function}" if file else function for function, file, line in frames]


@each_profile
def test_each_stack_begins_with_what_encloses_the_event(path: Path) -> None:
    expected = enclosing(path)
    seen = Counter[str]()
    for recording in complete(path):
        table, clock = recording.allocations, recording.clock
        assert clock is not None and recording.free_stack is not None
        for row in range(len(table)):
            start, end = int(table.start[row]), int(table.end[row])
            for free, at, leaf in ((False, start, table.stack[row]), (True, end, recording.free_stack[row])):
                if 0 <= at < recording.length:
                    around = expected[int(clock[at]), free]
                    stack = written(recording, int(leaf))
                    assert stack[: len(around)] == around
                    assert bool(stack) == bool(around), "a link to another thread goes on from a frame of its own"
                    seen[f"{free}"] += 1
                else:
                    assert leaf == -1
    assert seen.total() == len(expected), "every event of the profile is one end of one row"


@each_profile
def test_the_shares_that_have_a_stack(path: Path) -> None:
    told = [stacked(recording) for recording in complete(path)]
    assert tuple(map(sum, zip(*told, strict=True))) == SHARES[path.parents[3].name]
    raw = Counter((free, bool(around)) for (_, free), around in enclosing(path).items())
    counted = [raw[free, True] + extra for free in (False, True) for extra in (raw[free, False], 0)]
    assert tuple(counted) == SHARES[path.parents[3].name]


@each_profile
def test_the_answers_state_them(path: Path) -> None:
    for recording in complete(path):
        meta, _ = decode(rows(recording))
        assert meta["stacks"] == stacked(recording)._asdict()
        for row in range(0, len(recording.allocations), 50):
            assert recording.free_stack is not None
            told = details(recording, row)
            for key, leaf in (("stack", recording.allocations.stack[row]), ("freed_stack", recording.free_stack[row])):
                assert [f["function"] for f in told[key]] == [f for f, _, _ in recording.stacks.frames(int(leaf))]


def nested(log: Log, name: str, offset_ps: int, duration_ps: int) -> Log:
    number = max(log.plane.event_metadata) + 1
    log.plane.event_metadata[number].name = name.encode()
    log.plane.lines[-1].events.add(metadata_id=number, offset_ps=offset_ps, duration_ps=duration_ps)
    return log


def test_who_frees_is_told_from_who_allocates() -> None:
    """An allocation at an address that is taken ends a row, but frees nothing; what was there before can be freed."""
    log = Log()
    for time, (free, address) in enumerate([(False, 1), (True, 1), (False, 2), (False, 2), (True, 7)]):
        log.add(free, time * 10 + 5, allocator_name="a", addr=address, allocation_bytes=8)
    for time, name in enumerate(["make", "drop", "take", "take again", "clear"]):
        nested(log, name, time * 10, 10)
    recording = log.only().complete
    assert recording.free_stack is not None
    table = recording.allocations
    found = [
        (start, written(recording, int(made)), written(recording, int(freed)))
        for start, made, freed in zip(table.start.tolist(), table.stack, recording.free_stack, strict=True)
    ]
    assert found[:4] == [
        (0, ["make"], ["drop"]),
        (2, ["take"], []),
        (3, ["take again"], []),
        (-1, [], ["clear"]),
    ]
    assert stacked(recording) == (3, 3, 2, 2)


def test_before_the_stacks_are_known_none_is_claimed() -> None:
    log = nested(Log().add(False, 5, allocator_name="a", addr=1, allocation_bytes=8), "f", 0, 10)
    assert stacked(log.only()) == (1, 0, 0, 0)
    assert stacked(log.only().complete) == (1, 1, 0, 0)
