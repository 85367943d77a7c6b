"""The compiler's heap-simulator traces, replayed in plain Python, and the schedule positions of their events."""

from __future__ import annotations

from collections import Counter

import pytest
from support.aot import PROGRAMS, ahead_of_time
from support.subjects import TRACED, every_subject, lives, parsed, recordings

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers.hlo import read_hlo

ENTERED = (b"call", b"conditional", b"async-start", b"while")


def schedule(proto: HloProto) -> list[str]:
    """Return instructions in execution order, callees before callers; a loop's condition precedes its body."""
    computations = {c.id: c for c in proto.hlo_module.computations}
    instructions = {i.id: i for c in proto.hlo_module.computations for i in c.instructions}
    order: list[str] = []
    entered: set[int] = set()

    def enter(computation: int) -> None:
        if computation in entered:
            return
        entered.add(computation)
        for instruction_id in proto.hlo_module.schedule.sequences[computation].instruction_ids:
            instruction = instructions[instruction_id]
            if instruction.opcode in ENTERED:
                called = list(instruction.called_computation_ids)
                for callee in reversed(called) if instruction.opcode == b"while" else called:
                    enter(callee)
            order.append(instruction.name.decode())

    enter(proto.hlo_module.entry_computation_id or max(computations))
    return order


def replayed(proto: HloProto, spaces: set[int]) -> tuple[int, int]:
    """Return (peak bytes, bytes left at the end) over consecutive traces, of buffers in these spaces."""
    buffers = {b.id: b for b in proto.buffer_assignment.logical_buffers}
    canonical, holders = dict[int, int](), Counter[int]()
    live = most = 0
    for trace in proto.buffer_assignment.heap_simulator_traces:
        for event in trace.events:
            buffer = event.buffer_id
            if buffers[buffer].color not in spaces:
                continue
            if event.kind == event.FREE:
                root = canonical.pop(buffer)
                holders[root] -= 1
                live -= 0 if holders[root] else buffers[root].size
            else:
                shared = event.share_with_canonical_id if event.kind == event.SHARE_WITH else buffer
                root = canonical[buffer] = canonical.get(shared, shared)
                live += 0 if holders[root] else buffers[root].size
                holders[root] += 1
                most = max(most, live)
    return most, live


@every_subject
def test_the_axis_is_the_flattened_schedule(name: str) -> None:
    expected = schedule(parsed(name))
    for recording in recordings(name, TRACED):
        assert recording.program
        assert [recording.program.name[position] for position in range(recording.length)] == expected


@every_subject
def test_events_land_on_the_schedule(name: str) -> None:
    """Check that a buffer is allocated where its row starts, at its definition, and that events are in order."""
    proto = parsed(name)
    position = {instruction: p for p, instruction in enumerate(schedule(proto))}
    instructions = {i.id: i.name for c in proto.hlo_module.computations for i in c.instructions}
    definition = {b.id: instructions[b.defined_at.instruction_id] for b in proto.buffer_assignment.logical_buffers}
    starts = temporary_starts(name)
    for trace in proto.buffer_assignment.heap_simulator_traces:
        here = 0
        for event in trace.events:
            assert definition[event.buffer_id] == event.instruction_name
            if event.kind != event.FREE:
                at = position[event.instruction_name.decode()]
                assert at >= here
                assert starts[event.buffer_id] == at
                here = at


def temporary_starts(name: str) -> dict[int, int]:
    """Map each logical buffer to the position where its row starts."""
    starts = {}
    for recording in recordings(name, TRACED):
        for buffer, row in zip(recording.allocations.id.tolist(), lives(recording), strict=True):
            if row.kind == RegionKind.TEMPORARY:
                starts[buffer] = row.defined
    return starts


@every_subject
def test_all_that_a_trace_brings_it_takes_and_its_most_is_our_peak(name: str) -> None:
    for recording in recordings(name, TRACED):
        assert recording.program
        most, left = replayed(parsed(name), {recording.program.memory_space})
        held = sum(row.charge for row in lives(recording) if row.start < 0)
        rebuilt = any(caveat.code == "lifetimes_rebuilt" for caveat in recording.caveats)
        assert left == 0
        assert rebuilt or peak(recording).bytes == held + most


@every_subject
def test_reported_peak_is_xla_s_rule(name: str) -> None:
    """Sum the largest buffer of each persistent allocation and the peak of the traces, over all spaces."""
    proto = parsed(name)
    held = sum(
        max((placed.size for placed in a.assigned), default=0)
        for a in proto.buffer_assignment.buffer_allocations
        if not a.is_thread_local and (a.is_entry_computation_parameter or a.is_constant or a.maybe_live_out)
    )
    spaces = {b.color for b in proto.buffer_assignment.logical_buffers}
    main, *others = [r.reported_peak for r in recordings(name, TRACED)]
    assert main == held + replayed(proto, spaces)[0]
    assert set(others) <= {None}  # it is the sum of all memories, so that only the first has it


@pytest.mark.parametrize("name", PROGRAMS)
def test_reported_peak_is_jax_s_own(name: str) -> None:
    compiled = ahead_of_time(name)
    if compiled.peak_memory_in_bytes is None:
        pytest.skip("this JAX has no peak_memory_in_bytes")
    assert {r.reported_peak for r in read_hlo(compiled.untraced, source=name)} == {compiled.peak_memory_in_bytes}
