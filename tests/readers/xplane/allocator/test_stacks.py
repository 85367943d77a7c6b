"""The stack of every allocation and free in real profiles, recomputed from the events that enclose it."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from support.allocator_planes import FREES, REAL, Log, recordings_of
from support.payload_decoder import decode

from tb_memplugin.analysis.usage.live_bytes import count_stacks
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.xplane_pb2 import XSpace
from tb_memplugin.questions.recording.details import details
from tb_memplugin.questions.recording.tables import rows

each_profile = pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)

# (allocations, with a stack, frees, with a stack), over all memories of the profile.
SHARES = {
    "tracelens_mi300_conv_minimal_08": (115, 115, 115, 75),
    "tracelens_te_fused_attn": (30, 30, 29, 10),
    "xprof_demo_gpu_multi_worker": (1859, 1368, 634, 401),
    "xprof_tpu_inference_2_old": (453, 453, 453, 421),
}


@cache
def complete(path: Path) -> list[Recording]:
    return [*recordings_of(path).values()]


class Call(NamedTuple):
    line: int
    start: int  # ps, on the clock of the profile
    stop: int
    name: str
    stats: dict[str, int]

    def link(self, kind: str, number: str) -> tuple[int, int] | None:
        return (self.stats.get(kind, 0), self.stats[number] % 2**64) if number in self.stats else None


@cache
def host(path: Path) -> list[Call]:
    """Return every event of the host, in file order."""
    (plane,) = (p for p in XSpace.FromString(path.read_bytes()).planes if p.name == b"/host:CPU")
    names = {key: metadata.name.decode("utf-8", "replace") for key, metadata in plane.event_metadata.items()}
    stats = {key: metadata.name.decode() for key, metadata in plane.stat_metadata.items()}
    began = min(line.timestamp_ns for line in plane.lines)
    found = []
    for number, line in enumerate(plane.lines):
        for event in line.events:
            start = (line.timestamp_ns - began) * 1000 + event.offset_ps
            told = {
                stats[stat.metadata_id]: stat.int64_value or stat.uint64_value
                for stat in event.stats
                if stat.WhichOneof("value") in ("int64_value", "uint64_value")
            }
            found.append(Call(number, start, start + event.duration_ps, names[event.metadata_id], told))
    return found


class Calls:
    def __init__(self, calls: list[Call]) -> None:
        self.on_line: dict[int, list[Call]] = defaultdict(list)
        self.causes: dict[tuple[int, int] | None, list[Call]] = defaultdict(list)
        for call in calls:
            self.on_line[call.line].append(call)
            self.causes[call.link("_pt", "_p")].append(call)


def around(calls: Calls, call: Call) -> list[Call]:
    """Return the events that enclose an event on its line, innermost first."""
    found = [c for c in calls.on_line[call.line] if c.start <= call.start < c.stop and c is not call]
    found = [c for c in found if (c.start, -c.stop) < (call.start, -call.stop) or call.start == call.stop]
    return sorted(found, key=lambda c: (-c.start, c.stop))


def whole(calls: Calls, call: Call) -> list[str]:
    """Return the enclosing events, then those around the producer that caused the outermost consumer."""
    chain = around(calls, call)
    stack = [c.name for c in chain]
    for consumer in reversed(chain):
        wanted = consumer.link("_ct", "_c")
        causes = [c for c in calls.causes[wanted] if wanted and c.start <= consumer.start]
        if causes:
            # Of two that begin at once, the last in the file, as in a stable sort.
            cause = max(enumerate(causes), key=lambda numbered: (numbered[1].start, numbered[0]))[1]
            if cause.line != consumer.line:
                return [*stack, cause.name, *whole(calls, cause)]
    return stack


@cache
def enclosing(path: Path) -> dict[tuple[int, bool], list[str]]:
    """Map an allocator event's nanosecond, and whether it is a free, to its stack, innermost first."""
    calls = host(path)
    made = [(call.start // 1000, FREES[call.name], call) for call in calls if call.name in FREES]
    index = Calls(calls)
    found = {(time, free): whole(index, call) for time, free, call in made}
    assert len(found) == len(made)
    return found


def written(recording: Recording, leaf: int) -> list[str]:
    """Return a stack as the profile has it, with a Python frame as one text."""
    frames = recording.stacks.frames(leaf)
    return [f"${file}:{line} {function}" if file else function for function, file, line in frames]


@each_profile
def test_each_stack_is_what_encloses_the_event_and_what_caused_that(path: Path) -> None:
    expected = enclosing(path)
    seen = Counter[str]()
    for recording in complete(path):
        table, clock = recording.allocations, recording.clock
        assert clock is not None and recording.free_stack is not None
        for row in range(len(table)):
            start, end = int(table.start[row]), int(table.end[row])
            for free, at, leaf in ((False, start, table.stack[row]), (True, end, recording.free_stack[row])):
                if 0 <= at < recording.length:
                    assert written(recording, int(leaf)) == expected[int(clock[at]), free]
                    seen[f"{free}"] += 1
                else:
                    assert leaf == -1
    assert seen.total() == len(expected), "every event of the profile is one end of one row"


@each_profile
def test_the_shares_that_have_a_stack(path: Path) -> None:
    told = [count_stacks(recording) for recording in complete(path)]
    assert tuple(map(sum, zip(*told, strict=True))) == SHARES[path.parents[3].name]
    raw = Counter((free, bool(stack)) for (_, free), stack in enclosing(path).items())
    counted = [raw[free, True] + extra for free in (False, True) for extra in (raw[free, False], 0)]
    assert tuple(counted) == SHARES[path.parents[3].name]


@each_profile
def test_the_answers_state_them(path: Path) -> None:
    for recording in complete(path):
        meta, _ = decode(rows(recording))
        assert meta["stacks"] == count_stacks(recording)._asdict()
        for row in range(0, len(recording.allocations), 50):
            assert recording.free_stack is not None
            told = details(recording, row)
            for frames, leaf in (
                (told["stack"], recording.allocations.stack[row]),
                (told["freed_stack"], recording.free_stack[row]),
            ):
                assert [f["function"] for f in frames] == [f for f, _, _ in recording.stacks.frames(int(leaf))]


def nested(log: Log, name: str, offset_ps: int, duration_ps: int) -> Log:
    number = max(log.plane.event_metadata) + 1
    log.plane.event_metadata[number].name = name.encode()
    log.plane.lines[-1].events.add(metadata_id=number, offset_ps=offset_ps, duration_ps=duration_ps)
    return log


def test_an_allocation_at_an_address_in_use_is_not_a_free() -> None:
    """Allocate at an address that is in use: this ends a row but frees nothing. Memory from before can be freed."""
    log = Log()
    for time, (free, address) in enumerate([(False, 1), (True, 1), (False, 2), (False, 2), (True, 7)]):
        log.add(free, time * 10 + 5, allocator_name="a", addr=address, allocation_bytes=8)
    for time, name in enumerate(["make", "drop", "take", "take again", "clear"]):
        nested(log, name, time * 10, 10)
    recording = log.only()
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
    assert count_stacks(recording) == (3, 3, 2, 2)


def test_stacks_are_read_on_access_and_the_outline_has_none() -> None:
    log = nested(Log().add(False, 5, allocator_name="a", addr=1, allocation_bytes=8), "f", 0, 10)
    assert count_stacks(log.only().outline) == (1, 0, 0, 0)
    assert count_stacks(log.only()) == (1, 1, 0, 0)


def test_what_is_told_by_who_looked_has_no_stack_of_the_look() -> None:
    """Ignore the enclosing call: tb_memplugin.capture logs arrays when it polls, so the call allocated none of them."""
    for name, stacks in (("cpu:0 live arrays", [-1]), ("GPU_0_bfc", [0])):
        log = Log().add(False, 5, allocator_name=name, addr=1, allocation_bytes=8, bytes_allocated=8)
        log.plane.event_metadata[9].name = b"$allocator_events.py:75 write"
        log.plane.lines[0].events.add(metadata_id=9, offset_ps=0, duration_ps=9)
        assert log.only().allocations.stack.tolist() == stacks
