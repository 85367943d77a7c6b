from __future__ import annotations

import dataclasses

import numpy as np
from support.advised import MIB, given, kinds
from support.allocators import Block, allocator
from support.caching_allocator import CachingAllocator
from support.recordings import Row, recording
from support.torch_training import read_snapshot

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.recording.advice import advice, lines


def test_the_gaps_of_a_compiled_program_are_no_advice() -> None:
    """Only the compiler decides about them."""
    rows = [Row(60 * MIB, 0, 4), Row(20 * MIB, 2, 4, offset=60 * MIB), Row(70 * MIB, 5, 6)]
    program = recording(rows, 8, [(100 * MIB, RegionKind.TEMPORARY)])
    assert AdviceKind.FRAGMENTATION not in kinds(program)


def told(in_use: int, part: float) -> Recording:
    """Return an allocator of 1 GiB with one block, and with the fragmentation that it reports."""
    made = allocator([Block("weights", in_use * MIB, 0, None)], 1)
    assert made.reported is not None
    fragmentation = np.full(made.length, part)
    return dataclasses.replace(made, reported=dataclasses.replace(made.reported, fragmentation=fragmentation))


def test_an_allocator_that_is_nearly_full_and_broken_up() -> None:
    advice = given(told(824, 0.5), AdviceKind.FRAGMENTATION)
    assert advice.saving_bytes == 100 * MIB  # half of the 200 MiB that are free
    assert advice.bytes == 824 * MIB  # of the buffers between the gaps
    assert advice.change == "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"


def test_another_allocator_is_advised_only_where_there_is_one() -> None:
    on_tpu = dataclasses.replace(told(824, 0.5), memory="TPU core 0")
    assert "cuda" not in given(on_tpu, AdviceKind.FRAGMENTATION).change


def test_arrays_that_capture_tracked_are_no_allocator_s_memory() -> None:
    tracked = dataclasses.replace(told(824, 0.5), memory="cpu:0 live arrays")
    assert AdviceKind.FRAGMENTATION not in kinds(tracked)


def test_the_saving_is_a_part_of_the_reserved_memory_and_not_of_the_peak() -> None:
    full = told(824, 0.5)
    (piece,) = (piece for piece in advice(full)["advice"] if piece["kind"] == AdviceKind.FRAGMENTATION)
    assert (piece["saving_of"], piece["before_bytes"], piece["after_bytes"]) == ("reserved", 1024 * MIB, 924 * MIB)
    assert piece["fits"] is True  # the peak is within the gibibyte, before and after
    assert "  \N{MINUS SIGN}100 MiB, 10% of reserved  Fragmentation: 10% of the allocator's memory" in lines(
        advice(full)
    )


def test_where_most_is_free_holes_do_no_harm() -> None:
    assert AdviceKind.FRAGMENTATION not in kinds(told(300, 0.5))


def test_where_all_that_is_free_is_one_block_there_are_no_holes() -> None:
    assert AdviceKind.FRAGMENTATION not in kinds(told(824, 0.0))


def snapshot(expandable: bool) -> Recording:
    """Free every second of many tensors, also at the peak."""
    memory = CachingAllocator(expandable=expandable)
    made = [memory.alloc(3 * MIB) for _ in range(12)]
    for address in made[::2]:
        assert address is not None
        memory.free(address)
    memory.alloc(40 * MIB)
    return read_snapshot(memory.snapshot())


def test_expandable_segments_are_advised_where_they_are_not_used() -> None:
    assert given(snapshot(expandable=False), AdviceKind.FRAGMENTATION).change.endswith("expandable_segments:True")
    assert given(snapshot(expandable=True), AdviceKind.FRAGMENTATION).change.startswith(
        "Segments are expandable already"
    )
