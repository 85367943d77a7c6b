"""Profiler timeline categories applied to a snapshot in the same run."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pytest
from support.torch_training import Training

from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import RecordingKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.torch_profiler.exported_timeline import CATEGORIES


def write(folder: Path, shift_ns: int = 400) -> dict[int, Role]:
    """Return a snapshot without stacks, its timeline, and the true category by the number of each alloc event."""
    training = Training(2, clears=True, marks=False)
    rows = []
    for event, entry in enumerate(training.allocator.trace):
        if entry["action"] == "alloc":
            role = training.truth[event]
            number = next(i for i, category in enumerate(CATEGORIES) if category.role == role)
            rows.append([entry["time_us"] * 1000 + shift_ns, 2, training.allocator.truth[event], number])
        entry["frames"] = []
    folder.mkdir()
    (folder / "rank0.pickle").write_bytes(pickle.dumps(training.snapshot()))
    (folder / "rank0.raw.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    return training.truth


def snapshot_of(recordings: list[Recording]) -> Recording:
    [found] = [recording for recording in recordings if recording.kind == "torch_snapshot"]
    return found


def test_a_timeline_beside_a_snapshot_lends_it_its_categories(tmp_path: Path) -> None:
    truth = write(tmp_path / "run")
    recording = snapshot_of(listing_of_path(str(tmp_path)).recordings)
    found = dict(zip(recording.allocations.start.tolist(), roles(recording).tolist(), strict=True))
    assert found == truth
    assert set(recording.allocations.role.tolist()) == {Role.UNKNOWN}  # the snapshot's own table stays as read
    assert [timeline.kind for timeline in recording.timelines] == [RecordingKind.TORCH_TIMELINE]
    catalog = Catalog(str(tmp_path))
    listed = snapshot_of(catalog.listing("run").recordings)
    assert roles(listed).tolist() == roles(recording).tolist()
    assert catalog.recording(listed.id) is listed  # the categories are memoized


@pytest.mark.parametrize("shift_ns", [5_000_000_000, -3_600_000_000_000])
def test_a_timeline_of_another_time_lends_nothing(tmp_path: Path, shift_ns: int) -> None:
    write(tmp_path / "run", shift_ns)
    recording = snapshot_of(listing_of_path(str(tmp_path)).recordings)
    assert set(roles(recording).tolist()) == {Role.UNKNOWN}
