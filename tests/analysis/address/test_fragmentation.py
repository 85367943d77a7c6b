"""Holes between live blocks, checked byte by byte on synthetic address spaces and at every event of real allocators."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.allocator_planes import REAL, Log, events_of, recordings_of
from support.recordings import Row, recording

from tb_memplugin.analysis.fragmentation import Holes, fragmentation, holes, unplaced_bytes
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.graph.free_runs import free_runs

each_profile = pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)
same_each_time = settings(derandomize=True)
Found = tuple[int, int, int, int, int]  # region, offset, size, below, above

REGIONS = [(12, RegionKind.TEMPORARY), (0, RegionKind.TEMPORARY), (7, RegionKind.TEMPORARY)]


def listed(found: Holes) -> list[Found]:
    return list(zip(*(column.tolist() for column in found), strict=True))


def by_byte(of: Recording, position: int) -> list[tuple[int, int, int]]:
    """Return (region, offset, size) of each hole, by looking up the block at every byte of every region."""
    rows, found = of.allocations, []
    for region, size in enumerate(of.regions.size.tolist()):
        occupied = [False] * size + [True]
        for row in range(len(rows)):
            if rows.region[row] == region and rows.start[row] <= position < rows.end[row] and rows.offset[row] >= 0:
                for byte in range(int(rows.offset[row]), min(int(rows.offset[row] + rows.size[row]), size)):
                    occupied[byte] = True
        begin = 0
        for byte in range(size + 1):
            if occupied[byte]:
                found += [(region, begin, byte - begin)] if byte > begin else []
                begin = byte + 1
    return found


rows_strategy = st.lists(
    st.builds(
        lambda size, offset, region, start, life: Row(size, start, start + life, region, offset),
        st.integers(0, 5), st.integers(-1, 13), st.sampled_from([0, 1, 2]), st.integers(-1, 5), st.integers(0, 5),
    ),
    max_size=8,
)  # fmt: skip


@same_each_time
@given(rows_strategy)
def test_holes_are_those_of_each_byte(rows: list[Row]) -> None:
    of = recording(rows, 6, REGIONS)
    table = of.allocations
    for position in range(-1, 6):
        found = listed(holes(of, position))
        assert sorted(f[:3] for f in found) == by_byte(of, position)
        assert [f[2] for f in found] == sorted((f[2] for f in found), reverse=True)
        for region, offset, size, below, above in found:
            bottom, top = offset == 0, offset + size == REGIONS[region][0]
            assert (below == -1) == bottom and (above == -1) == top
            for row, edge in ((below, offset), (above, offset + size)):
                if row >= 0:
                    assert table.region[row] == region and table.start[row] <= position < table.end[row]
                    assert edge in (table.offset[row], table.offset[row] + table.size[row])
        longest, total = max((f[2] for f in found), default=0), sum(f[2] for f in found)
        if 0 <= position < 6:
            curve = fragmentation(of)
            assert not curve.reported
            if unplaced_bytes(of, position):
                assert np.isnan(curve.largest_free[position]) and np.isnan(curve.fragmented[position])
            else:
                assert (curve.largest_free[position], curve.fragmented[position]) == (longest, total - longest)


@same_each_time
@given(
    st.lists(st.tuples(st.integers(-1, 6), st.integers(-1, 6), st.integers(0, 9), st.integers(0, 9)), max_size=10),
    st.integers(0, 9),
)
def test_free_runs_beside_plain_python(blocks: list[tuple[int, int, int, int]], space: int) -> None:
    blocks = [(s, e, min(low, high, space), min(max(low, high), space)) for s, e, low, high in blocks]
    start, end, low, high = np.array(blocks, dtype=np.int64).reshape(-1, 4).T.copy()
    longest, total = free_runs(start, end, low, high, space, 6)
    for position in range(6):
        free = [not any(s <= position < e and bottom <= b < top for s, e, bottom, top in blocks) for b in range(space)]
        runs = "".join("X."[byte] for byte in free).split("X")
        assert (longest[position], total[position]) == (max(map(len, runs)), sum(free))


def union(blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for low, high in sorted(blocks):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


@each_profile
def test_holes_of_real_allocators_lie_between_what_is_live(path: Path) -> None:
    """Check some events of each allocator: the raw events contain the address of every block.

    Bytes that no block ever used are skipped: their owner is unknown.
    """
    raw = events_of(path)
    for memory, of in recordings_of(path).items():
        assert of.reported is not None
        held: dict[int, int] = {}
        blocks: list[tuple[int, int]] = []
        base, size = int(of.regions.index[0]), int(of.regions.size[0])
        orphans: dict[int, int] = {}  # # freed in the recording, and allocated before it
        for event in raw[memory]:
            address = event.stats["addr"]
            if event.free:
                if address not in held:
                    orphans[address] = event.stats["allocation_bytes"]
                    blocks.append((address, address + orphans[address]))
                held.pop(address, None)
            else:
                held[address] = event.stats["allocation_bytes"]
                blocks.append((address, address + held[address]))
        used = union(blocks)
        held = dict(orphans)
        chosen = {0, of.length // 3, of.length // 2, of.length - 1}
        for position, event in enumerate(raw[memory]):
            address = event.stats["addr"]
            if event.free:
                del held[address]
            else:
                held[address] = event.stats["allocation_bytes"]
            if position in chosen:
                expected = []
                for begin, end in used:
                    reach = begin
                    for low, length in [*sorted((a, n) for a, n in held.items() if begin <= a < end), (end, 0)]:
                        if low > reach:
                            expected.append((reach - base, low - reach))
                        reach = max(reach, low + length)
                found = holes(of, position)
                assert sorted(zip(found.offset.tolist(), found.size.tolist(), strict=True)) == expected
                assert int(found.size.sum()) + sum(held.values()) == sum(end - begin for begin, end in used) <= size
                assert unplaced_bytes(of, position) == of.reported.in_use[position] - sum(held.values())


@each_profile
def test_the_allocator_s_own_figure_at_every_event(path: Path) -> None:
    for memory, of in recordings_of(path).items():
        curve = fragmentation(of)
        assert curve.reported
        for position, event in enumerate(events_of(path)[memory]):
            free, fraction = event.stats["bytes_available"], event.stats["fragmentation"]
            assert curve.largest_free[position] == round(free * (1 - fraction))
            assert curve.largest_free[position] + curve.fragmented[position] == pytest.approx(free, abs=1)


def small(**told: float) -> Recording:
    log = Log()
    for time, (free, address) in enumerate([(False, 0), (False, 8), (False, 32), (True, 8)]):
        log.add(free, time, allocator_name="a", addr=1000 + address, allocation_bytes=8, **told)
    return log.only()


def test_without_the_allocator_s_figure_the_addresses_tell() -> None:
    curve = fragmentation(small())
    # Bytes 16 to 32 have no known block, so they are not known to be the allocator's.
    assert (curve.largest_free.tolist(), curve.fragmented.tolist()) == ([8, 8, 0, 8], [8, 0, 0, 0])
    assert listed(holes(small(), 3)) == [(0, 8, 8, 0, -1)]
    assert listed(holes(small(), 1)) == [(0, 32, 8, -1, -1)]


def test_what_lies_nowhere_known_leaves_the_largest_block_unknown() -> None:
    log = Log()
    for time, (address, in_use) in enumerate([(1000, 108), (None, 116)]):
        log.add(False, time, allocator_name="a", allocation_bytes=8, bytes_allocated=in_use,
                **({} if address is None else {"addr": address}))  # fmt: skip
    of = log.only()
    assert np.isnan(fragmentation(of).largest_free).all()
    assert (unplaced_bytes(of, 0), unplaced_bytes(of, 1)) == (100, 108)


def test_many_blocks_that_pin_as_many_holes() -> None:
    """Free every second of 20,000 blocks: the analysis must not take quadratic time."""
    n = 20_000
    of = recording([Row(8, -1 if i % 2 else i, n if i % 2 else i + 1, 0, 8 * i) for i in range(n)], n)
    curve = fragmentation(of)
    assert set(curve.largest_free.tolist()) == {8}
    assert curve.fragmented[0] == 8 * (n // 2 - 1) - 8
    found = holes(of, 0)
    assert len(found.size) == n // 2 - 1
    assert (found.below[0], found.above[0]) == (1, 3)


def test_no_rows_and_no_regions() -> None:
    of = recording([], 0)
    assert listed(holes(of, 0)) == []
    assert len(fragmentation(of).largest_free) == 0
    nowhere = fragmentation(dataclasses.replace(of, length=3))
    assert np.isnan(nowhere.largest_free).all() and np.isnan(nowhere.fragmented).all(), "of no memory nothing is known"
