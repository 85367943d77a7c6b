"""Watched processes in a fleet: each device is counted once, with the peak of its curve and the lines of a snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.in_process import InProcess
from support.pprof_files import Frame, Sample, Writer
from support.watch_files import MIB, live_file, saw_tooth, watch_bytes

from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.logdir import find_runs
from tb_memplugin.model.fleet import Fleet
from tb_memplugin.questions.fleet.words import outlier_text


def profile(size: int) -> bytes:
    writer = Writer()
    writer.add(Sample([Frame("put", "checkpoint.py", 88)], size, 1, "buffer", "cuda:0"))
    return writer.profile.SerializeToString()


def fleet(logdir: Path) -> Fleet:
    [capture] = captures(find_runs(str(logdir)))
    return Scan(InProcess).fleet(capture)


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """Return the logdir of four hosts, of which the last has 100 MiB more, and two snapshots."""
    for number in range(4):
        path = live_file(tmp_path, devices=1, process=f"host{number}_{4711 - number}")
    path.write_bytes(watch_bytes({"cuda:0": saw_tooth(60, high=1000 * MIB)}))
    for step, size in enumerate((700 * MIB, 800 * MIB)):
        (path.parent / f"memory_{step:08d}.prof").write_bytes(profile(size))
    return tmp_path


def test_each_device_is_counted_once_with_the_peak_of_its_curve(pod: Path) -> None:
    found = fleet(pod)
    assert found.hosts == ("host0_4711", "host1_4710", "host2_4709", "host3_4708") and not found.missing
    assert [device.summary.peak_bytes // MIB for device in found.devices] == [900, 900, 900, 1000]
    last = found.devices[-1]
    assert last.path.endswith(".watch") and last.recording_id.endswith("|host3_4708|watch|cuda:0")
    assert [(site.text, site.bytes // MIB) for site in last.summary.sites] == [("checkpoint.py:88 put", 800)]
    assert last.summary.other_bytes == 200 * MIB


def test_lines_that_are_known_of_one_host_only_are_not_said_to_be_on_it_only(pod: Path) -> None:
    [memory] = FleetAnswer(fleet(pod)).memories
    [outlier] = memory.peaks.outliers
    text = outlier_text(memory, outlier, 4)
    assert text == "checkpoint.py:88 put, 800 MiB in its snapshot; other hosts saved none"


def test_a_floor_that_grows_is_a_leak_of_its_host(tmp_path: Path) -> None:
    path = live_file(tmp_path, devices=1)
    steps = {at: at // 4 for at in range(0, 400, 4)}
    path.write_bytes(watch_bytes({"cuda:0": saw_tooth(400, growth=MIB)}, steps=steps))
    [leak] = FleetAnswer(fleet(tmp_path)).leaks
    assert (leak.site, leak.unit) == ("memory in use between steps", "step")
    assert leak.bytes == pytest.approx(MIB, rel=0.05)
