"""Live bytes of every recording: at most what is reserved, and the same figure in every analysis."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from support.allocator_planes import REAL, recordings_of
from support.servers import DATA, DEMO, TESTS
from support.subjects import both_ways, every_subject, recordings

from tb_memplugin.analysis.replay.what_if import NO_CHANGE, lifetimes, peak_after, replace_lifetimes
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak, reserved_bytes, usage
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.commands.support.output import listing_of
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.hlo.shared_bytes import union_over_time
from tb_memplugin.readers.hlo import read_hlo

DUMPS = sorted((TESTS / "data" / "programs").glob("*.hlo.pb.gz"))
TORCH = sorted(path for path in DATA.glob("torch_*/*") if path.is_file())
DEMOS = sorted(path for path in DEMO.iterdir() if path.is_dir())


def check(recording: Recording) -> None:
    """Check the peak against the reserved bytes, the rows that are live there, and replays that change nothing."""
    top = peak(recording)
    assert top.bytes <= reserved_bytes(recording)
    live = live_rows(recording, top.position)
    if len(explained_bytes(recording)):
        assert recording.allocations.charge[live].sum() == explained_bytes(recording)[top.position]
    assert peak_after(recording, NO_CHANGE).bytes == top.bytes
    assert (usage(recording).requested <= usage(recording).live).all()


def check_program(recording: Recording, use_traces: bool) -> None:
    """Check charges against addresses too. Without traces, lifetimes end at the last use that is known."""
    check(recording)
    top, rows = peak(recording), recording.allocations
    assert recording.allocations.charge[live_rows(recording, top.position)].sum() == top.bytes
    temporary = np.flatnonzero(recording.regions.kind[rows.region] == RegionKind.TEMPORARY)
    unchanged = replace_lifetimes(recording, temporary, lifetimes(recording).take(temporary))
    after = peak_after(recording, unchanged).bytes
    assert after == top.bytes if use_traces else top.bytes - 1024 <= after <= top.bytes
    assert (temporary_bytes(recording) == occupied_bytes(recording)).all()


def temporary_bytes(recording: Recording) -> np.ndarray:
    """Return the charges of rows in temporary regions at each position."""
    rows = recording.allocations
    charge = np.where(recording.regions.kind[rows.region] == RegionKind.TEMPORARY, rows.charge, 0)
    change = np.zeros(recording.length + 1, dtype=np.int64)
    np.add.at(change, np.clip(rows.start, 0, None), charge)
    np.add.at(change, np.clip(rows.end, 0, None), -charge)
    return np.cumsum(change)[: recording.length]


def occupied_bytes(recording: Recording) -> np.ndarray:
    """Return how many bytes of temporary regions live, charged rows occupy at each position, by their addresses."""
    rows = recording.allocations
    own = np.flatnonzero((recording.regions.kind[rows.region] == RegionKind.TEMPORARY) & (rows.charge > 0))
    lifetime = np.tile(np.arange(len(own)), 2)
    position, begins = np.r_[rows.start[own], rows.end[own]], np.repeat(np.array([1, 0], dtype=np.int8), len(own))
    region = rows.region[own].astype(np.int64)
    order = np.lexsort((position, region[lifetime]))
    order = order[np.lexsort((-begins[order], position[order], region[lifetime[order]]))]
    more = union_over_time(region, rows.offset[own], rows.size[own], lifetime[order], begins[order])
    change = np.zeros(recording.length + 1, dtype=np.int64)
    np.add.at(change, position[order], more)
    return np.cumsum(change)[: recording.length]


@every_subject
@both_ways
def test_programs(name: str, use_traces: bool) -> None:
    for recording in recordings(name, use_traces):
        check_program(recording, use_traces)


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.name.removesuffix(".hlo.pb.gz"))
def test_programs_for_accelerators(path: Path) -> None:
    data = gzip.decompress(path.read_bytes())
    for use_traces in (True, False):
        for recording in read_hlo(data, source=path.name, use_traces=use_traces):
            check_program(recording, use_traces)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)
def test_allocators(path: Path) -> None:
    for recording in recordings_of(path).values():
        check(recording)


@pytest.mark.parametrize("path", [*TORCH, *DEMOS], ids=lambda path: path.name)
def test_other_recordings(path: Path) -> None:
    for recording in listing_of(str(path)).recordings:
        check(recording)
