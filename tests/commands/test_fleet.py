"""`tb-memplugin fleet`, `cache`, and `check` on many hosts."""

from __future__ import annotations

import csv
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from support.in_process import no_processes as no_processes

from benchmarks.pods.pod import SESSION, START, Pod, write_trend
from benchmarks.pods.truth import Capture, Faults
from tb_memplugin.cli import main
from tb_memplugin.protos import xplane_pb2

pytestmark = pytest.mark.slow  # each command reads many files

FAULTS = Faults(outliers=1, leaks=1, missing=2, damaged=1, other_programs=1)


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Capture]:
    logdir = tmp_path_factory.mktemp("pod")
    return str(logdir), Pod(16, 2, 0.5, faults=FAULTS, skew_seconds=5).write(logdir)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TB_MEMPLUGIN_FLEET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def few_processes(request: pytest.FixtureRequest) -> None:
    """Let only the tests that ask for processes start them: the answers are the same."""
    if "processes" not in request.fixturenames:
        request.getfixturevalue("no_processes")


@pytest.fixture
def processes() -> None:
    """Keep the processes that a command starts."""


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_the_worst_device_is_named_with_its_cause(
    pod: tuple[str, Capture], processes: None, capsys: pytest.CaptureFixture[str]
) -> None:
    logdir, truth = pod
    assert run("fleet", logdir) == 0
    lines = capsys.readouterr().out.splitlines()
    (outlier,) = truth.outliers
    numbers = ", ".join(host.rpartition("-")[2] for host in truth.missing)
    assert f"14 hosts, 26 devices, 1 program (another on 1 host), 2 hosts missing: {numbers}" in lines[0]
    assert lines[1].startswith(f"joined    {len(truth.sessions)} sessions: ") and "60 s" in lines[1]
    assert lines[2].startswith(f"worst     {outlier.host} {outlier.memory}   30.9 GiB of 31.2 GiB   2.")
    assert lines[3].endswith("because: checkpoint.py:88 device_put, 2.10 GiB, on this host only")
    assert lines[4].startswith("median    28.8 GiB · p95 ") and lines[4].endswith("outliers on 1 host")
    assert [line[:10].strip() for line in lines[5:]] == ["growth", "program", "problem"]
    assert f"{truth.leaks[0].host}: metrics.py:41 record, 24.0 MiB per step on both devices" in lines[5]
    assert truth.other_programs[0] in lines[6] and next(iter(truth.damaged)) in lines[7]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
def test_a_row_for_each_device_program_and_problem(pod: tuple[str, Capture], tmp_path: Path, suffix: str) -> None:
    logdir, truth = pod
    file = tmp_path / f"fleet.{suffix}"
    assert run("fleet", logdir, "--to", file) == 0
    if suffix == "parquet":
        rows = pytest.importorskip("pyarrow.parquet").read_table(file).to_pylist()
    else:
        text = file.read_bytes().decode()
        rows = json.loads(text) if suffix == "json" else list(csv.DictReader(text.splitlines()))
    devices = [row for row in rows if row["kind"] == "device"]
    assert {(row["host"], row["name"]): int(row["peak_bytes"]) for row in devices} == {
        (device.host, device.memory): device.peak_bytes for device in truth.devices
    }
    (outlier,) = (row for row in devices if row["outlier"] in (True, "true"))
    assert (outlier["host"], outlier["cause"]) == (truth.outliers[0].host, "checkpoint.py:88 device_put")
    programs = [row for row in rows if row["kind"] == "program"]
    assert len(programs) == 13 and {row["name"] for row in programs} == {"jit_train_step"}
    assert [row["host"] for row in rows if row["kind"] == "problem"] == list(truth.damaged)
    assert run("fleet", logdir, "--to", file) == 2
    assert run("fleet", logdir, "--to", Path(logdir) / "fleet.csv", "--force") == 2


def test_the_newest_capture_is_read_unless_another_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Pod(2, 1, 0.5).write(tmp_path)
    Pod(3, 1, 0.5).write(tmp_path, start=START + timedelta(minutes=10))
    assert run("fleet", tmp_path) == 0
    printed = capsys.readouterr()
    assert "04_17_01: 3 hosts" in printed.out and "1 older capture left out" in printed.err
    assert run("fleet", tmp_path, "--capture", "04_07") == 0
    assert "04_07_01: 2 hosts" in capsys.readouterr().out
    assert run("fleet", tmp_path, "--all") == 0
    assert capsys.readouterr().out.count("worst") == 2
    assert run("fleet", tmp_path, "--capture", "nothing") == 2
    assert run("fleet", tmp_path, "--join-within", 600) == 0
    assert "04_07_01" in (out := capsys.readouterr().out) or "3 hosts" in out


def test_faults_of_an_older_capture_are_not_hidden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = Pod(16, 2, 0.5, faults=FAULTS).write(tmp_path)
    Pod(16, 2, 0.5).write(tmp_path, start=START + timedelta(minutes=10))
    planted = (truth.leaks[0].host, truth.outliers[0].host)
    hosts = (truth.missing[0], next(iter(truth.damaged)), *planted, truth.other_programs[0])
    missing, damaged, leak, outlier, other = (host.rpartition("-")[2] for host in hosts)
    assert run("fleet", tmp_path) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("left out"))
    assert "04_07_01: 2 hosts missing: " in line and missing in line and "outliers" not in line
    assert run("check", tmp_path, "--max-spread", "5%") == 0
    assert "Not checked: 1 other capture" in capsys.readouterr().out
    assert run("check", tmp_path, "--max-spread", "5%", "--all-captures") == 1
    assert "of 2 captures checked" in capsys.readouterr().out
    assert run("fleet", tmp_path) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("left out"))
    found = f"1 file with problems: {damaged}; leaks on 1 host: {leak}; outliers on 1 host: {outlier}; "
    found += f"another program on 1 host: {other}"
    assert line.endswith(found)


def test_a_damaged_file_without_a_host_has_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Pod(2, 1, 0.5).write(tmp_path)
    (tmp_path / "older").mkdir()
    program = tmp_path / "older" / "step.hlo.pb"
    program.write_bytes(b"")
    os.utime(program, (0, 0))
    assert run("fleet", tmp_path, "--all") == 0
    capsys.readouterr()
    assert run("fleet", tmp_path) == 0
    assert "older: 1 file with problems: step.hlo.pb" in capsys.readouterr().out


def test_several_logdirs_are_read_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Pod(2, 1, 0.5, name="a{}").write(tmp_path / "one")
    Pod(2, 1, 0.5, name="b{}").write(tmp_path / "two")
    assert run("fleet", tmp_path / "one", tmp_path / "two", tmp_path / "one") == 0
    assert ": 4 hosts, 4 devices" in capsys.readouterr().out


def test_check_of_a_fleet(pod: tuple[str, Capture], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    logdir, truth = pod
    assert run("check", logdir, "--max-spread", "5%") == 1
    assert "spread of 7" in (out := capsys.readouterr().out) and "checkpoint.py:88" in out
    assert run("check", logdir, "--fleet", "--max-peak", "30GiB") == 1
    assert truth.outliers[0].host in capsys.readouterr().out
    assert run("check", logdir, "--max-spread", "8%", "--max-peak", "31GiB") == 2  # a file could not be checked
    assert next(iter(truth.damaged)) in capsys.readouterr().err
    Pod(2, 1, 0.5).write(tmp_path / "healthy")
    assert run("check", tmp_path / "healthy", "--max-spread", "8%", "--max-peak", "31GiB") == 0
    assert capsys.readouterr().out.startswith("Within a peak of 31.0 GiB and a spread of 8.0%: 2 devices checked")
    for wrong in (["--max-spread", "5"], ["--fleet"], ["--max-spread", "x%"]):
        assert run("check", logdir, *wrong) == 2


def test_one_host_that_was_profiled_again_is_not_the_newest_capture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Pod(4, 1, 0.5, faults=Faults(outliers=1, leaks=0, missing=0, damaged=0)).write(tmp_path)
    Pod(1, 1, 0.5).write(tmp_path, start=START + timedelta(seconds=40))
    assert run("check", tmp_path, "--fleet", "--max-peak", "30GiB") == 1
    told = capsys.readouterr()
    assert "4 devices checked" in told.out
    assert "has 1 host of 4 and is not taken as the newest capture: see --capture" in told.err
    newest = (START + timedelta(seconds=40)).strftime(SESSION)
    assert run("check", tmp_path, "--fleet", "--max-peak", "30GiB", "--capture", newest) == 0
    assert "1 device checked" in capsys.readouterr().out


def test_hosts_files_and_devices_fail_a_check_that_asks_for_them(
    pod: tuple[str, Capture], capsys: pytest.CaptureFixture[str]
) -> None:
    logdir, truth = pod
    assert run("check", logdir, "--expect", "16", "--json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["expected_hosts"], answer["hosts"]) == (16, 14)
    assert [failure["text"] for failure in answer["failures"]] == ["14 hosts, 16 expected"]
    assert run("check", logdir, "--expect", "14", "--fail-on", "unreadable, missing,outliers", "--json") == 1
    failures = json.loads(capsys.readouterr().out)["failures"]
    assert [failure["kind"] for failure in failures] == ["missing", "unreadable", "outliers"]
    assert failures[0]["text"].startswith(f"{len(truth.missing)} hosts missing: ")
    assert run("check", logdir, "--expect", "14", "--max-peak", "40GiB") == 2, "a file cannot be read"
    assert run("check", logdir, "--fail-on", "mising") == 2
    assert "choose from missing, unreadable, outliers" in capsys.readouterr().err


def test_without_memory_data_the_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = tmp_path / "run" / "plugins" / "profile" / "2026_11_23_04_07_01"
    session.mkdir(parents=True)
    (session / "w-0.xplane.pb").write_bytes(xplane_pb2.XSpace().SerializeToString() or b"\x0a\x00")
    for also in ((), ("--trend",), ("--json",)):
        assert run("fleet", tmp_path, *also) == 2
        assert "No memory data of devices" in capsys.readouterr().err


def test_a_trend_names_the_day_and_the_line(
    processes: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = write_trend(Pod(1, 1, 0.5), tmp_path, 3)
    assert run("fleet", "--trend", tmp_path) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if truth.source_line in line)
    assert line.startswith(truth.changed) and "1.50 GiB, new" in line
    assert run("fleet", "--trend", tmp_path, "--to", tmp_path / "x.csv") == 2
    assert run("fleet", "--trend", "--by", "capture", tmp_path) == 0
    assert f"\n{truth.changed}/" in capsys.readouterr().out


def test_the_cache_is_shown_and_cleared(
    pod: tuple[str, Capture], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fleet", pod[0]) == 0
    capsys.readouterr()
    assert run("cache") == 0
    assert "summaries of 14 files and 2 programs" in capsys.readouterr().out
    assert run("cache", "--clear", "fleet") == 0
    assert "summaries of 0 files and 0 programs" in capsys.readouterr().out
    assert run("fleet", pod[0], "--no-cache") == 0
    assert not list(cache.iterdir())


def test_no_profile_and_no_process_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([tmp_path], [tmp_path / "nothing"], [tmp_path, "--jobs", "0"], [tmp_path, "--scheduler", "x://"]):
        assert run("fleet", *arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_nothing_is_written_into_a_logdir(pod: tuple[str, Capture]) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in Path(pod[0]).rglob("*"))
    assert run("fleet", pod[0]) == 0
    assert sorted((path, path.stat().st_mtime_ns) for path in Path(pod[0]).rglob("*")) == before
