"""Generated pods: their stated figures, read by our readers and by other tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import pytest

from benchmarks.cold_server import XPROF_RS
from benchmarks.pods.allocator import CAPACITY
from benchmarks.pods.pod import CHANGE, START, Pod, write_trend
from benchmarks.pods.ranks import write_ranks
from benchmarks.pods.tasks import GIB, STEPS
from benchmarks.pods.truth import LEAK, OUTLIER, Capture, Faults
from benchmarks.timing import BIN
from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_steps import leaks
from tb_memplugin.analysis.linking import stack_of_program
from tb_memplugin.analysis.ownership.source_lines import source_lines
from tb_memplugin.analysis.usage.live_bytes import count_stacks, peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.logdir.runs import find_runs
from tb_memplugin.model.kinds import RecordingKind, SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.xplane_pb2 import XSpace

SMALL = Pod(hosts=6, devices=2, megabytes=0.5)
FAULTY = replace(
    SMALL,
    hosts=12,
    faults=Faults(outliers=1, leaks=1, missing=2, damaged=3, other_programs=1),
    skew_seconds=9,
)


def read(path: Path) -> dict[str, Recording]:
    """Return the recordings of a file's devices by memory."""
    found = listing_of_path(str(path)).recordings
    return {recording.memory: recording for recording in found if recording.kind is not RecordingKind.PROGRAM}


class Written(NamedTuple):
    """A capture in a logdir."""

    logdir: Path
    capture: Capture

    @property
    def files(self) -> dict[str, Path]:
        """The file of each host."""
        return files(*self)


def files(logdir: Path, capture: Capture) -> dict[str, Path]:
    """Return the file of each host."""
    sessions = logdir / capture.run / "plugins" / "profile"
    return {
        host: sessions / session / f"{host}.xplane.pb" for session, hosts in capture.sessions.items() for host in hosts
    }


def lines_at_peak(recording: Recording) -> Mapping[str, int]:
    """Return the bytes of each source line at the peak."""
    rows, found = live_rows(recording, peak(recording).position), dict[str, int]()
    lines = source_lines(recording)
    for row in rows.tolist():
        found[lines[row]] = found.get(lines[row], 0) + int(recording.allocations.charge[row])
    return found


def assert_read(paths: Mapping[str, Path], capture: Capture) -> None:
    """Check the peak and the capacity of every device that is in a readable file."""
    wanted = {(d.host, d.memory): (d.peak_bytes, d.capacity_bytes) for d in capture.devices}
    found = {
        (host, memory): (peak(recording).bytes, recording.capacity or 0)
        for host, path in paths.items()
        if host not in capture.damaged
        for memory, recording in read(path).items()
    }
    assert found == wanted


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("healthy")
    return Written(folder, SMALL.write(folder))


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("faulty")
    return Written(folder, FAULTY.write(folder))


def test_our_reader_finds_the_stated_peaks(healthy: Written) -> None:
    capture, paths = healthy.capture, healthy.files
    assert len(paths) == 6 and len(capture.devices) == 12
    assert_read(paths, capture)


def test_a_device_has_what_real_ones_have(healthy: Written) -> None:
    path = next(iter(healthy.files.values()))
    recording = read(path)["TPU core 1"]
    counted = count_stacks(recording)
    assert counted.with_stack == counted.allocations > 100
    assert recording.caveats[0].bytes == 64 << 20 and len(recording.caveats) == 1  # from before the recording
    spans = recording.spans
    assert spans is not None
    steps = [spans.name[row] for row in range(len(spans)) if spans.kind[row] == SpanKind.STEP]
    assert steps == [f"train {step}" for step in range(STEPS)]
    assert (spans.kind == SpanKind.EXECUTION).sum() == STEPS  # of the device's own plane
    lines = lines_at_peak(recording)
    assert set(lines) >= {"state.py:27", "optimizer.py:19", "train.py:64", "data.py:57"}
    assert recording.capacity == CAPACITY
    (program,) = (r for r in listing_of_path(str(path)).recordings if r.kind is RecordingKind.PROGRAM)
    assert stack_of_program(recording, [program]).program[peak(recording).position] == 0


def test_a_healthy_pod_has_a_small_spread_and_no_growth(tmp_path: Path) -> None:
    capture = replace(SMALL, hosts=30).write(tmp_path)
    peaks = [device.peak_bytes for device in capture.devices]
    low, *_, high = quantiles(peaks, n=20)
    assert 28.7 * GIB < capture.median_bytes < 28.9 * GIB
    assert 0 < high - low < 0.1 * GIB
    assert max(peaks) - min(peaks) < 0.2 * GIB
    for path in list(files(tmp_path, capture).values())[:3]:
        for recording in read(path).values():
            sites = leaks(recording).sites
            assert sites is not None and Verdict.LEAK not in sites.verdict


def test_planted_faults_are_in_the_files(faulty: Written) -> None:
    capture = faulty.capture
    paths = faulty.files
    every = {FAULTY.name.format(number) for number in range(12)}
    assert set(paths) == every - set(capture.missing) and len(capture.missing) == 2
    assert set(capture.damaged.values()) == {"truncated", "garbage", "empty"}
    for host, damage in capture.damaged.items():
        assert bool(paths[host].stat().st_size) == (damage != "empty")
        assert not read(paths[host])
    assert_read(paths, capture)
    growing = {planted.host for planted in (*capture.outliers, *capture.leaks)}
    assert not growing & {*capture.missing, *capture.damaged, *capture.other_programs}


def test_an_outlier_is_above_the_median_by_what_its_line_allocates(faulty: Written) -> None:
    capture = faulty.capture
    (planted,) = capture.outliers
    recording = read(faulty.files[planted.host])[planted.memory]
    assert peak(recording).bytes - capture.median_bytes == pytest.approx(OUTLIER.bytes, rel=0.03)
    assert lines_at_peak(recording)[planted.source_line] == pytest.approx(planted.bytes, abs=512)
    assert (recording.capacity or 0) - peak(recording).bytes > 0


def test_only_the_host_with_a_leak_grows(faulty: Written) -> None:
    capture = faulty.capture
    planted = {(leak.host, leak.memory): leak for leak in capture.leaks}
    assert len(planted) == 2
    for host, path in faulty.files.items():
        for memory, recording in ({} if host in capture.damaged else read(path)).items():
            sites = leaks(recording).sites
            assert sites is not None
            growing = {source_lines(recording)[row]: slope for row, verdict, slope in zip(
                sites.row.tolist(), sites.verdict.tolist(), sites.bytes_per_step.tolist(), strict=True
            ) if verdict == Verdict.LEAK}  # fmt: skip
            assert growing == ({"metrics.py:41": LEAK.bytes} if (host, memory) in planted else {})


def test_hosts_have_one_program_but_for_those_with_another(faulty: Written) -> None:
    capture = faulty.capture
    contents: dict[bytes, list[str]] = {}
    figures = set()
    for host, path in faulty.files.items():
        if host not in capture.damaged:
            space = XSpace.FromString(path.read_bytes())
            (plane,) = (plane for plane in space.planes if plane.name == b"/host:metadata")
            (event,) = plane.event_metadata.values()
            contents.setdefault(event.stats[0].bytes_value, []).append(host)
            figures |= {
                (r.title, peak(r).bytes)
                for r in listing_of_path(str(path)).recordings
                if r.kind is RecordingKind.PROGRAM
            }
    assert sorted(contents.values(), key=len)[0] == capture.other_programs
    assert len(contents) == capture.programs == 2
    assert len(figures) == 1


def test_clocks_differ_by_seconds_and_a_later_capture_by_minutes(tmp_path: Path) -> None:
    pod = replace(SMALL, hosts=8, devices=1, skew_seconds=9)
    first, later = (
        pod.write(tmp_path),
        replace(pod, skew_seconds=0).write(tmp_path, start=START + timedelta(minutes=10)),
    )
    sessions = sorted(first.sessions)
    assert sessions[0] >= "2026_11_23_04_07_01" and sessions[-1] <= "2026_11_23_04_07_10"
    assert len(sessions) > 3
    assert list(later.sessions) == ["2026_11_23_04_17_01"]
    assert {run.name for run in find_runs(str(tmp_path))} == {
        f"run42/{session}" for session in (*first.sessions, *later.sessions)
    }


def test_equal_arguments_give_equal_bytes(tmp_path: Path) -> None:
    one = replace(SMALL, hosts=2)
    pods = [one, one, replace(one, seed=1)]
    captures = [pod.write(tmp_path / str(number)) for number, pod in enumerate(pods)]
    first, again, other = (
        {host: path.read_bytes() for host, path in files(tmp_path / str(number), capture).items()}
        for number, capture in enumerate(captures)
    )
    assert first == again and captures[0] == captures[1]
    assert all(first[host] != other[host] for host in first)
    assert len(set(first.values())) == len(first)


@pytest.mark.parametrize("megabytes", [2, 5])
def test_files_have_the_requested_size(tmp_path: Path, megabytes: int) -> None:
    capture = replace(SMALL, hosts=2, megabytes=megabytes).write(tmp_path)
    for path in files(tmp_path, capture).values():
        assert path.stat().st_size == pytest.approx(megabytes * 1e6, rel=0.01)
    assert_read(files(tmp_path, capture), capture)


def test_faults_for_more_hosts_than_there_are_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="6 hosts are too few"):
        replace(SMALL, faults=Faults(damaged=4, outliers=3)).write(tmp_path)


@pytest.mark.parametrize("suffix", [".prof", ".pickle"])
def test_ranks_have_the_stated_peaks(tmp_path: Path, suffix: str) -> None:
    faults = Faults(outliers=1, missing=2, damaged=3, leaks=int(suffix == ".pickle"))
    capture = write_ranks(replace(FAULTY, faults=faults), tmp_path, suffix)
    paths = {path.name.removesuffix(suffix): path for path in (tmp_path / capture.run).iterdir()}
    assert_read(paths, capture)
    (planted,) = capture.outliers
    recording = read(paths[planted.host])[planted.memory]
    lines = lines_at_peak(recording)
    assert lines["/job/checkpoint.py:88"] == pytest.approx(OUTLIER.bytes, abs=512)
    assert max(path.stat().st_size for path in paths.values()) < 100_000
    for leak in capture.leaks:
        sites = leaks(read(paths[leak.host])[leak.memory]).sites
        assert sites is not None and sites.verdict[0] == Verdict.LEAK and sites.bytes_per_step[0] == leak.bytes


def test_faults_that_files_of_ranks_cannot_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot have other programs"):
        write_ranks(FAULTY, tmp_path, ".pickle")


def test_one_day_of_a_trend_raises_the_peak(tmp_path: Path) -> None:
    trend = write_trend(replace(SMALL, hosts=2), tmp_path, 6)
    runs = [capture.run for capture in trend.days]
    assert runs[0] == "2026-11-18" and runs[-1] == "2026-11-23" and trend.changed == "2026-11-22"
    medians = [capture.median_bytes for capture in trend.days]
    before, after = medians[:4], medians[4:]
    assert min(after) - max(before) == pytest.approx(CHANGE.bytes, rel=0.15)
    for capture in trend.days:
        assert_read(files(tmp_path, capture), capture)
        recording = next(iter(read(next(iter(files(tmp_path, capture).values()))).values()))
        assert (lines_at_peak(recording).get(trend.source_line, 0) == trend.bytes) == (capture.run >= trend.changed)


def peaks_of_xprof(answer: Mapping[str, Any]) -> dict[str, int]:
    """Return the peak of each device in an answer of XProf's memory_profile."""
    return {
        f"TPU core {core}": int(found["profileSummary"]["peakStats"]["peakBytesInUse"])
        for core, found in answer["memoryProfilePerAllocator"].items()
    }


def test_xprof_finds_the_same_peaks(tmp_path: Path) -> None:
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    capture = replace(SMALL, hosts=1).write(tmp_path)
    (path,) = files(tmp_path, capture).values()
    answer = json.loads(convert.xspace_to_tool_data([str(path)], "memory_profile", {})[0])
    assert peaks_of_xprof(answer) == {device.memory: device.peak_bytes for device in capture.devices}


@pytest.mark.skipif(not (BIN / "xprof-rs").exists(), reason="xprof-rs is not installed")
def test_xprof_rs_finds_the_same_peaks(tmp_path: Path) -> None:
    capture = replace(SMALL, hosts=1, megabytes=5).write(tmp_path)
    (session,) = capture.sessions
    run, (device, *_) = f"{capture.run}/{session}", capture.devices
    with XPROF_RS.running(tmp_path) as (client, _):
        answer = client.json("data/plugin/profile/data", run=run, tag="memory_profile", host=device.host)
    assert peaks_of_xprof(answer) == {device.memory: device.peak_bytes for device in capture.devices}
