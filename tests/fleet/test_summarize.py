"""Summaries of real files of all formats, and of damaged ones."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from support.allocator_planes import REAL
from support.servers import DATA, DEMO

import tb_memplugin.fleet.summarize
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.fleet.summarize import read_programs, summarize
from tb_memplugin.logdir import host_file
from tb_memplugin.model.fleet import MAX_SITES, FileSummary
from tb_memplugin.model.recording import Recording

FILES = [
    *REAL,
    *sorted((DATA / "pprof").glob("*.prof")),
    *sorted((DATA / "torch_snapshot").glob("*.pickle")),
    *sorted((DATA / "torch_trace").glob("*.json.gz")),
]


def summary_of(path: Path) -> FileSummary:
    return summarize(host_file(str(path)), "run")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:30])
def test_peaks_are_those_of_the_recordings_and_sites_add_up_to_them(path: Path) -> None:
    found = summary_of(path)
    listing = listing_of_path(str(path))
    recordings = {r.memory: r for r in listing.recordings if not r.kind.has_program}
    assert {device.device: device.peak_bytes for device in found.devices} == {
        memory: peak(recording).bytes for memory, recording in recordings.items()
    }
    for device in found.devices:
        sizes = [site.bytes for site in device.sites]
        assert sizes == sorted(sizes, reverse=True) and 0 < len(sizes) <= MAX_SITES
        assert sum(sizes) + device.other_bytes == pytest.approx(device.peak_bytes, rel=0.01)
        assert device.capacity_bytes == (recordings[device.device].capacity or 0)
    assert not found.problem
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("run", ["train_step", "v5e_train_step", "h100_train_step", "scan_remat"])
def test_programs_have_the_sizes_of_their_recordings(run: str) -> None:
    path = next(path for path in (DEMO / run).rglob("*") if path.name.endswith((".xplane.pb", ".hlo.pb.gz")))
    found = summary_of(path)
    fingerprints = {use.fingerprint for use in found.programs}
    programs = {p.fingerprint: p for p in read_programs(host_file(str(path)), fingerprints)}
    sizes = sorted(
        peak(r).bytes for r in listing_of_path(str(path)).recordings if r.kind.has_program and r.is_main_memory
    )
    assert sorted(program.peak_bytes for program in programs.values()) == sizes
    assert len(fingerprints) == len(found.programs) == len(programs)
    assert not found.devices


def test_a_leak_is_named() -> None:
    (device,) = summary_of(next((DEMO / "leak").rglob("*.xplane.pb"))).devices
    assert (device.growth, device.growth_bytes, device.growth_unit) == ("make_leak_demo.py:61", 2 << 20, "step")
    (mended,) = summary_of(next((DEMO / "leak_mended").rglob("*.xplane.pb"))).devices
    assert not mended.growth


def test_an_error_text_is_a_problem() -> None:
    found = summary_of(next(DEMO.rglob("*.oom.txt")))
    assert found.problem.startswith("out of memory: ") and not found.devices


@pytest.mark.parametrize("content", [b"", b"\0", b"\x0a\xff\xff\xff\xff\x7f", b"garbage" * 1000])
@pytest.mark.parametrize("name", ["host.xplane.pb", "memory.prof", "rank.pickle", "p.hlo.pb.gz"])
def test_a_damaged_file_is_a_summary_with_its_problem(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    found = summary_of(tmp_path / name)
    assert not found.devices and not found.may_pass
    if name != "p.hlo.pb.gz" or not content:
        assert found.problem and "\n" not in found.problem


def test_a_file_that_is_gone_may_be_readable_later(tmp_path: Path) -> None:
    (tmp_path / "host.xplane.pb").write_bytes(b"x")
    file = host_file(str(tmp_path / "host.xplane.pb"))
    (tmp_path / "host.xplane.pb").unlink()
    assert summarize(file, "run").may_pass


def test_a_host_with_damaged_stacks_has_its_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(recording: Recording) -> None:
        raise InputError("the stacks are damaged", "x", "profile again")

    monkeypatch.setattr(tb_memplugin.fleet.summarize, "largest_sites", damaged)
    found = summary_of(DEMO / "device_profile/memory.prof")
    assert found.devices and all(device.peak_bytes == device.other_bytes for device in found.devices)
    assert "the stacks are damaged: profile again" in found.problem
