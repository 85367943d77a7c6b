"""The generator's description of its modules, recomputed from the files it wrote."""

import json
from functools import cache
from pathlib import Path

import pytest
from support import xprof_converter
from support.payload_decoder import decode

from benchmarks import generate
from benchmarks.assignment import BestFitHeap
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.protos import hlo_pb2, xplane_pb2
from tb_memplugin.questions.kinds.first_view import first_view

SIZES = [250, 600, 1501]
ALLOC, FREE, SHARE_WITH = range(3)


@cache
def module(buffers: int) -> tuple[hlo_pb2.HloProto, generate.ExpectedProgram]:
    return generate.generate(buffers)


def entry(proto: hlo_pb2.HloProto) -> list[hlo_pb2.HloInstructionProto]:
    """Return the entry computation in schedule order."""
    of_id = {i.id: i for computation in proto.hlo_module.computations for i in computation.instructions}
    order = proto.hlo_module.schedule.sequences[proto.hlo_module.entry_computation_id].instruction_ids
    return [of_id[instruction] for instruction in order]


def lives(proto: hlo_pb2.HloProto) -> dict[int, tuple[int, int]]:
    """Map each logical buffer to the positions of its definition and its last use; a bitcast extends the use."""
    schedule = entry(proto)
    position = {instruction.id: p for p, instruction in enumerate(schedule)}
    holds = {b.defined_at.instruction_id: b.id for b in proto.buffer_assignment.logical_buffers}
    life = {b.id: (p := position[b.defined_at.instruction_id], p) for b in proto.buffer_assignment.logical_buffers}
    for p, instruction in enumerate(schedule):
        if instruction.opcode == b"bitcast":
            holds[instruction.id] = holds[instruction.operand_ids[0]]
        for operand in instruction.operand_ids:
            life[holds[operand]] = (life[holds[operand]][0], p)
    return life


def temporaries(proto: hlo_pb2.HloProto) -> hlo_pb2.BufferAllocationProto:
    (allocation,) = (
        a
        for a in proto.buffer_assignment.buffer_allocations
        if not (a.is_entry_computation_parameter or a.maybe_live_out or a.is_constant or a.is_thread_local)
    )
    return allocation


def canonical(proto: hlo_pb2.HloProto) -> dict[int, int]:
    events = proto.buffer_assignment.heap_simulator_traces[0].events
    return {
        event.buffer_id: event.share_with_canonical_id if event.kind == SHARE_WITH else event.buffer_id
        for event in events
        if event.kind != FREE
    }


@pytest.mark.parametrize("buffers", SIZES)
def test_every_logical_buffer_asked_for_is_placed_once(buffers: int) -> None:
    proto, truth = module(buffers)
    ids = [b.id for b in proto.buffer_assignment.logical_buffers]
    placed = [p.logical_buffer_id for a in proto.buffer_assignment.buffer_allocations for p in a.assigned]
    assert truth.logical_buffers == buffers
    assert sorted(placed) == sorted(ids) == list(range(buffers))


@pytest.mark.parametrize("buffers", SIZES)
def test_the_peak_is_what_adding_up_every_position_finds(buffers: int) -> None:
    proto, truth = module(buffers)
    temporary = temporaries(proto)
    life, root = lives(proto), canonical(proto)
    held = sum(a.size for a in proto.buffer_assignment.buffer_allocations) - temporary.size
    size = {p.logical_buffer_id: p.size for p in temporary.assigned}
    live = []
    for position in range(len(entry(proto))):
        roots = {root[b] for b in size if life[b][0] <= position <= life[b][1]}
        live.append(held + sum(size[b] for b in roots))
    assert held == truth.persistent_bytes
    assert held + temporary.size == truth.reserved_bytes
    assert max(live) == truth.peak_bytes <= truth.reserved_bytes
    assert live.index(max(live)) == truth.peak_position


@pytest.mark.parametrize("buffers", SIZES)
def test_temporaries_that_live_at_once_share_bytes_only_with_their_canonical_buffer(buffers: int) -> None:
    proto, _ = module(buffers)
    life, root = lives(proto), canonical(proto)
    placed = list(temporaries(proto).assigned)
    end = max(p.offset + p.size for p in placed)
    sharing = 0
    for i, a in enumerate(placed):
        (a_start, a_end) = life[a.logical_buffer_id]
        for b in placed[:i]:
            (b_start, b_end) = life[b.logical_buffer_id]
            apart = a_end < b_start or b_end < a_start
            if not apart and a.offset < b.offset + b.size and b.offset < a.offset + a.size:
                assert root[a.logical_buffer_id] == root[b.logical_buffer_id]
                sharing += 1
    assert sharing
    assert temporaries(proto).size - 512 < end <= temporaries(proto).size


@pytest.mark.parametrize("buffers", SIZES)
def test_the_trace_follows_the_schedule(buffers: int) -> None:
    proto, truth = module(buffers)
    events = proto.buffer_assignment.heap_simulator_traces[0].events
    life = lives(proto)
    names = [instruction.name for instruction in entry(proto)]
    # An instruction's result is allocated before the operands that it uses last are freed.
    moments = [(life[e.buffer_id][e.kind == FREE], e.kind == FREE) for e in events]
    assert moments == sorted(moments)
    assert all(e.instruction_name == names[life[e.buffer_id][0]] for e in events)
    assert sorted(e.buffer_id for e in events if e.kind == FREE) == sorted(canonical(proto))
    assert moments[truth.peak_event] == (truth.peak_position, False)


def test_a_module_has_what_makes_real_ones_hard() -> None:
    proto, _ = module(1501)
    schedule, assignment = entry(proto), proto.buffer_assignment
    kinds = {event.kind for event in assignment.heap_simulator_traces[0].events}
    donated = [a for a in assignment.buffer_allocations if a.is_entry_computation_parameter and len(a.assigned) == 2]
    assert kinds == {ALLOC, FREE, SHARE_WITH}
    assert {b"bitcast", b"constant", b"fusion", b"parameter", b"tuple"} < {i.opcode for i in schedule}
    assert len(donated) == len(proto.hlo_module.input_output_alias.entries) > 0
    assert len({i.shape for i in schedule}) < 250
    assert any(b"transpose(jvp(layer_3))/mlp" in i.metadata.op_name for i in schedule)
    assert all(0 <= i.metadata.stack_frame_id <= len(proto.hlo_module.stack_frame_index.stack_frames) for i in schedule)


def test_a_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    path, _ = generate.write(tmp_path / "first", 300)
    again, _ = generate.write(tmp_path / "again", 300)
    other, _ = generate.write(tmp_path / "other", 300, seed=1)
    assert path.read_bytes() == again.read_bytes() != other.read_bytes()


def test_too_few_buffers_for_a_step_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 35 logical buffers, not 34"):
        generate.generate(34)
    assert generate.generate(35)[1].logical_buffers == 35


@pytest.mark.parametrize("buffers", SIZES)
def test_xprof_finds_the_same_peak(buffers: int, tmp_path: Path) -> None:
    pytest.importorskip("xprof")
    path, truth = generate.write(tmp_path, buffers)
    answer = json.loads(xprof_converter.memory_viewer(extract(path)))
    mib = 2**20
    assert answer["peakHeapMib"] * mib == pytest.approx(truth.peak_bytes, abs=1)
    assert answer["totalBufferAllocationMib"] * mib == pytest.approx(truth.reserved_bytes, abs=1)
    assert answer["indefiniteBufferAllocationMib"] * mib == pytest.approx(truth.persistent_bytes, abs=1)
    assert answer["peakHeapSizePosition"] == truth.peak_event
    assert answer["unpaddedHeapSizes"] != answer["heapSizes"]


@pytest.mark.parametrize("buffers", SIZES)
def test_our_first_view_finds_the_same_peak_in_the_profile_and_in_the_bare_module(buffers: int, tmp_path: Path) -> None:
    path, truth = generate.write(tmp_path, buffers)
    for file in (path, extract(path)):
        (recording,) = listing_of_path(str(file)).recordings
        meta, _ = decode(first_view(recording))
        assert meta["recording"]["peak_bytes"] == truth.peak_bytes


def test_the_two_sides_of_the_benchmark_agree(tmp_path: Path) -> None:
    pytest.importorskip("xprof")
    file = extract(generate.write(tmp_path, 600)[0])
    (recording,) = listing_of_path(str(file)).recordings
    theirs = json.loads(xprof_converter.memory_viewer(file))
    assert theirs["peakHeapMib"] * 2**20 == pytest.approx(peak(recording).bytes, abs=1)


def extract(path: Path) -> Path:
    """Write the module next to its profile, where XProf's server writes it."""
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    (event,) = space.planes[0].event_metadata.values()
    file = path.parent / (event.name.decode() + xprof_converter.SUFFIX)
    file.write_bytes(event.stats[0].bytes_value)
    return file


def test_the_heap_takes_the_smallest_hole_that_holds_the_bytes() -> None:
    heap = BestFitHeap()
    offsets = [heap.allocate(size) for size in (2048, 512, 1024, 512)]
    assert offsets == [0, 2048, 2560, 3584]
    heap.free(0, 2048)
    heap.free(2560, 1024)
    assert heap.allocate(1000) == 2560
    assert heap.allocate(512) == 0
    assert heap.size == 4096


def test_the_heap_joins_free_neighbours_and_grows_only_by_what_is_missing() -> None:
    heap = BestFitHeap()
    for offset in (0, 512, 1024):
        assert heap.allocate(512) == offset
    for offset in (0, 1024, 512):
        heap.free(offset, 512)
    assert heap.allocate(2048) == 0
    assert heap.size == 2048
