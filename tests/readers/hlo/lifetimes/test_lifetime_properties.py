"""Properties of the lifetimes of every program, recomputed from the rows in plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from support.aot import PROGRAMS, ahead_of_time
from support.subjects import REBUILT, TRACED, Life, both_ways, every_subject, lives, parsed, recordings

from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.protos.hlo_pb2 import HloProto, ShapeProto
from tb_memplugin.readers.hlo import read_hlo

TUPLE = 13  # bytes of XLA's element types

# Largest excess of a rebuilt peak over the trace's, over all subjects: the pointer tables of tuples, which traces
# leave out. No program has any other difference.
REBUILT_ABOVE_TRACED = 64


@both_ways
@every_subject
def test_buffers_in_the_same_bytes_at_the_same_time_are_one(name: str, use_traces: bool) -> None:
    for recording in recordings(name, use_traces):
        regions: dict[int, list[Life]] = {}
        for row in lives(recording):
            if row.size and row.kind != RegionKind.THREAD_LOCAL:
                regions.setdefault(row.region, []).append(row)
        for together in regions.values():
            for a, b in combinations(together, 2):
                in_bytes = a.offset < b.offset + b.size and b.offset < a.offset + a.size
                in_time = a.defined <= b.last_used and b.defined <= a.last_used
                assert not (in_bytes and in_time) or a.canonical == b.canonical, (a, b)


@both_ways
@every_subject
def test_a_region_holds_what_lies_in_it(name: str, use_traces: bool) -> None:
    for recording in recordings(name, use_traces):
        for row in lives(recording):
            assert 0 <= row.offset <= row.offset + row.size <= recording.regions.size[row.region], row


@both_ways
@every_subject
def test_live_in_a_temporary_region_is_never_below_nothing_nor_above_its_size(name: str, use_traces: bool) -> None:
    for recording in recordings(name, use_traces):
        for region in range(len(recording.regions)):
            if recording.regions.kind[region] == RegionKind.TEMPORARY:
                live = [0] * recording.length
                for row in lives(recording):
                    if row.region == region:
                        for position in range(row.start, row.end if row.charge else row.start):
                            live[position] += row.charge
                assert 0 <= min(live) <= max(live) <= recording.regions.size[region]


@both_ways
@every_subject
def test_live_ends_where_it_began(name: str, use_traces: bool) -> None:
    """Check that persistent rows are live before and after the program, and all others only within it."""
    for recording in recordings(name, use_traces):
        in_memory = (recording.regions.kind & RegionKind.THREAD_LOCAL) == 0
        held = recording.regions.size[in_memory & (recording.regions.kind != RegionKind.TEMPORARY)].sum()
        rows = [row for row in lives(recording) if row.charge]
        assert held == sum(row.charge for row in rows if row.start < 0)
        assert held == sum(row.charge for row in rows if row.start < 0 and row.end == recording.length)
        assert all((row.kind == RegionKind.TEMPORARY) == (row.start >= 0) for row in rows)
        assert all(row.start < row.end <= recording.length for row in rows)


@both_ways
@every_subject
def test_usage_is_the_sum_of_the_charges(name: str, use_traces: bool) -> None:
    for recording in recordings(name, use_traces):
        live = [0] * recording.length
        for row in lives(recording):
            for position in range(max(row.start, 0), row.end if row.charge else 0):
                live[position] += row.charge
        assert usage(recording).live.tolist() == live
        assert peak(recording) == (max(live), live.index(max(live)))


@every_subject
def test_rebuilding_understands_every_alias(name: str) -> None:
    """Check that nothing is overwritten while the program, as read, still needs it, in any memory space."""
    codes = Counter(str(caveat.code) for recording in recordings(name, REBUILT) for caveat in recording.caveats)
    assert not codes["reused_early"]


@every_subject
def test_rebuilt_lifetimes_reach_the_traces_peak(name: str) -> None:
    for traced, rebuilt in zip(recordings(name, TRACED), recordings(name, REBUILT), strict=True):
        more = peak(rebuilt).bytes - peak(traced).bytes
        assert 0 <= more <= min(REBUILT_ABOVE_TRACED, pointer_tables(parsed(name)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_trace_the_peak_is_that_of_the_same_program_with_one(name: str) -> None:
    """Compare a program without a trace, as JAX returns it, with the trace in XLA's dump of the same program."""
    without = ahead_of_time(name).untraced
    proto = HloProto.FromString(without)
    assert not proto.buffer_assignment.heap_simulator_traces
    (traced,), (untraced,) = recordings(f"jax:{name}", TRACED), read_hlo(without, source=name)
    assert 0 <= peak(untraced).bytes - peak(traced).bytes <= min(REBUILT_ABOVE_TRACED, pointer_tables(proto))
    assert "lifetimes_rebuilt" in {caveat.code for caveat in untraced.caveats}


def pointer_tables(proto: HloProto) -> int:
    """Return the bytes of all tuples in temporary allocations."""
    shapes = {i.id: i.shape for c in proto.hlo_module.computations for i in c.instructions}
    tuples = set()
    for buffer in proto.buffer_assignment.logical_buffers:
        shape = ShapeProto.FromString(shapes[buffer.defined_at.instruction_id])
        for index in buffer.defined_at.shape_index:
            shape = shape.tuple_shapes[index]
        if shape.element_type == TUPLE:
            tuples.add(buffer.id)
    return sum(
        placed.size
        for a in proto.buffer_assignment.buffer_allocations
        if not (a.is_entry_computation_parameter or a.maybe_live_out or a.is_constant or a.is_thread_local)
        for placed in a.assigned
        if placed.logical_buffer_id in tuples
    )
