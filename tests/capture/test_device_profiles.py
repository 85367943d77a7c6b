"""Device profiles written by snapshot() and on_oom(), read back by our reader and by the pprof schema."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import CaptureInfo, Recording
from tb_memplugin.protos.pprof_pb2 import Profile
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.kinds.device_profile import figures, headline
from tb_memplugin.readers import open_file

jax = pytest.importorskip("jax")

from tb_memplugin.capture import device_profiles, on_oom, snapshot, snapshot_every  # noqa: E402  # it imports jax

STATS = {"bytes_in_use": 3000, "peak_bytes_in_use": 9000, "bytes_limit": 10_000, "largest_free_block_bytes": 3500}


def recordings(logdir: Path) -> list[Recording]:
    listing = listing_of_path(str(logdir))
    assert not listing.problems
    return sorted(listing.recordings, key=lambda recording: recording.title)


def test_a_snapshot_is_a_run_of_the_logdir_and_knows_when_it_was_taken(tmp_path: Path) -> None:
    kept = jax.device_put(np.zeros((77, 1000), np.float32))
    path = snapshot(str(tmp_path), step=12)
    assert path is not None
    (recording,) = recordings(tmp_path)
    assert recording.source == path and recording.run.startswith("device_profiles/")
    assert recording.capture_info is not None and recording.capture_info.step == 12
    assert (
        recording.capture_info.time_ns is not None
        and abs(recording.capture_info.time_ns / 1e9 - os.stat(path).st_mtime) < 60
    )
    assert kept.nbytes in recording.allocations.size.tolist()
    assert [name for _, _, names in os.walk(tmp_path) for name in names] == [Path(path).name]


def test_pprof_reads_it_as_it_reads_jaxs_own(tmp_path: Path) -> None:
    plain = jax.profiler.device_memory_profile()
    noted = device_profiles.annotate(plain, 5, None, {"cpu:0": STATS})
    before, after = (Profile.FromString(gzip.decompress(data)) for data in (plain, noted))
    assert list(after.string_table)[:-1] == list(before.string_table)
    assert after.string_table[after.comment[0]].startswith(b'tb_memplugin {"step": null')
    assert after.time_nanos == 5
    for field in ("sample", "location", "function", "sample_type"):
        assert getattr(after, field) == getattr(before, field)


@pytest.mark.parametrize(("largest_free", "fragmentation"), [(3500, 0.5), (0, None)])  # GPUs always report 0
def test_what_the_device_said_then_stands_beside_what_the_profile_explains(
    largest_free: int, fragmentation: float | None
) -> None:
    device = str(jax.local_devices()[0])
    kept = jax.device_put(np.zeros(100, np.float32))
    stats = STATS | {"largest_free_block_bytes": largest_free}
    noted = device_profiles.annotate(jax.profiler.device_memory_profile(), 1, 7, {device: stats})
    (part,) = open_file(noted, "m.prof")
    (recording,) = part.read()
    known = int(recording.allocations.charge.sum())
    assert known >= kept.nbytes
    assert recording.capture_info == CaptureInfo(1, 7)
    assert (recording.capacity, recording.reported_peak) == (10_000, 9000)
    said = {figure.key: figure.bytes for figure in figures(recording)}
    assert (said["in_use"], said["unexplained"]) == (3000, 3000 - known)
    assert "the device has 2.93 KiB in use" in headline(recording)
    assert recording.reported is not None
    [known_share] = recording.reported.fragmentation.tolist()
    assert np.isnan(known_share) if fragmentation is None else known_share == fragmentation


@pytest.mark.parametrize(
    "note",
    ["", "tb_memplugin {", "tb_memplugin []", 'tb_memplugin {"step": -1, "devices": {"cpu:0": {"bytes_in_use": 1e99}}}',
     'tb_memplugin {"step": true, "devices": [1]}', "tb_memplugin " + "[" * 100_000],
)  # fmt: skip
def test_a_note_that_is_none_changes_nothing(note: str) -> None:
    profile = Profile.FromString(gzip.decompress(jax.profiler.device_memory_profile()))
    profile.comment.append(len(profile.string_table))
    profile.string_table.append(note.encode())
    (part,) = open_file(profile.SerializeToString(), "m.prof")
    for recording in part.read():
        assert recording.capture_info == CaptureInfo() and recording.reported is None


def test_every_third_step_from_the_first_on(tmp_path: Path) -> None:
    saw = snapshot_every(3, str(tmp_path))
    saved = [saw(step) is not None for step in range(100, 108)]
    assert saved == [True, False, False, True, False, False, True, False]
    assert [r.capture_info.step for r in recordings(tmp_path) if r.capture_info] == [100, 103, 106]
    assert len({r.run for r in recordings(tmp_path)}) == 1
    with pytest.raises(ValueError, match="n_steps is 0"):
        snapshot_every(0, str(tmp_path))


def run_out() -> Any:
    raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.")


def test_an_error_of_memory_leaves_a_profile_and_its_own_text(tmp_path: Path) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as raised, on_oom(str(tmp_path)):
        kept = jax.device_put(np.zeros(4321, np.float32))
        run_out()
    profile = next(r for r in recordings(tmp_path) if r.kind == "device_profile")
    assert kept.nbytes in profile.allocations.size.tolist()
    (text,) = tmp_path.rglob("*.oom.txt")
    assert text.read_text() == str(raised.value)
    assert any(profile.source in note for note in raised.value.__notes__)
    answer = explain(profile, others=recordings(tmp_path))
    assert answer["headline"].startswith("An allocation of 6.00 MiB in device memory failed · Peak ")


def test_other_errors_leave_nothing_and_a_failure_to_save_is_a_note(tmp_path: Path) -> None:
    @on_oom(str(tmp_path))
    def train() -> None:
        raise KeyError("memory")

    with pytest.raises(KeyError):
        train()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as raised,
        on_oom(str(tmp_path / "file")),
    ):
        run_out()
    assert any("could not be saved" in note for note in raised.value.__notes__)
