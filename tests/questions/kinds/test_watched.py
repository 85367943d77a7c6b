"""Headline and figures of a curve: its peak, its growth, and whether its job still runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.pprof_files import Frame, Sample, Writer
from support.watch_files import MIB, START_NS, live_file, saw_tooth, watch_bytes
from werkzeug.test import Client

from tb_memplugin.analysis.leaks.classify import floor_growth
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.cli import main
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.kinds.first_view import first_view
from tb_memplugin.questions.kinds.leaks import findings
from tb_memplugin.questions.kinds.memory_profile import figures
from tb_memplugin.questions.kinds.verdict import verdict, verdict_text
from tb_memplugin.readers import open_file
from tb_memplugin.readers.watch_layout import DeviceColumn


def recording(
    samples: list[dict[DeviceColumn, int]], *, steps: bool = True, finished: bool = False, seconds: int = 1
) -> Recording:
    numbers = {at: at // 4 for at in range(0, len(samples), 4)} if steps else None
    data = watch_bytes({"cuda:0": samples}, steps=numbers, finished=finished, interval_ns=seconds * 10**9)
    (part,) = open_file(data, "/logs/host0_7.watch", run="run", host="host0_7")
    [found] = part.read()
    return found


def test_the_verdict_has_peak_and_limit() -> None:
    assert verdict_text(verdict(recording(saw_tooth(60)))) == "900 MiB of 1.00 GiB"


def test_figures_are_those_of_the_allocator() -> None:
    found = {figure.key: figure.bytes for figure in figures(recording(saw_tooth(62)))}
    assert found == {
        "live_peak": 900 * MIB,
        "capacity": 1024 * MIB,
        "reported_peak": 900 * MIB,
        "last": 512 * MIB + (388 * MIB) // 3,
        "free": 124 * MIB,
        "largest_free": 62 * MIB,
        "fragmented": 62 * MIB,
    }
    assert first_view(recording(saw_tooth(62)))


@pytest.mark.parametrize("steps", [True, False])
def test_a_floor_that_grows_is_a_leak_with_its_rate(steps: bool) -> None:
    leaking = recording(saw_tooth(400, growth=MIB), steps=steps)
    found = floor_growth(leaking)
    assert found is not None and found.grows
    rate = found.bytes_per_unit if steps else found.bytes_per_unit * 4 / 3600
    assert rate == pytest.approx(MIB, rel=0.05)
    sentence = "between steps grows by 1.00 MiB per step" if steps else "The least memory in use grows by"
    assert sentence in verdict(leaking)["alarm"]
    assert findings(leaking)["message"] == f"{verdict(leaking)['alarm']}."


def test_the_rate_is_per_step_where_several_steps_are_between_two_samples() -> None:
    """Seven steps a sample in the first half, and three later."""
    numbers = {row: 7 * min(row, 100) + 3 * max(row - 100, 0) for row in range(200)}
    samples = [{DeviceColumn.IN_USE: 512 * MIB + number * MIB} for number in numbers.values()]
    (part,) = open_file(watch_bytes({"cuda:0": samples}, steps=numbers), "/logs/host0_7.watch")
    found = floor_growth(part.read()[0])
    assert found is not None and found.grows
    assert found.bytes_per_unit == pytest.approx(MIB, rel=0.15)  # a line through the windows, which have a bend


def test_a_floor_that_stays_or_stops_is_none() -> None:
    assert verdict(recording(saw_tooth(400)))["alarm"] == ""
    grown = saw_tooth(100, growth=MIB)
    stopped = recording([*grown, *[dict(grown[-4 + number % 4]) for number in range(300)]])
    assert verdict(stopped)["alarm"] == ""
    assert findings(stopped)["message"] == "The least memory in use between steps does not grow."
    few = recording(saw_tooth(24, growth=MIB))
    assert floor_growth(few) is None and "9 marked steps in 45 samples" in (findings(few)["message"] or "")
    assert floor_growth(recording(saw_tooth(44, growth=MIB))) is None, "11 steps in 44 samples"
    assert floor_growth(recording(saw_tooth(45, growth=MIB))) is not None


def test_summary_and_explain_show_a_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = live_file(tmp_path)
    assert main(["summary", str(tmp_path)]) == 0
    assert "device_profiles/2027_01_15_08_00_00_host0_7" in capsys.readouterr().out
    assert main(["explain", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "900 MiB of 1.00 GiB" in shown and "see the run's snapshots" in shown and "Leaks" not in shown
    assert main(["check", str(tmp_path), "--max-peak", "800MiB"]) == 1
    for command in ("buffers", "advice"):
        assert main([command, str(tmp_path)]) == 2
        assert "A curve has no allocations" in capsys.readouterr().err
    profile = Writer()
    profile.add(Sample([Frame("put", "checkpoint.py", 88)], 700 * MIB, 1, "buffer", "cuda:0"))
    (path.parent / "memory_00000005.prof").write_bytes(profile.profile.SerializeToString())
    capsys.readouterr()
    assert main(["explain", str(tmp_path), "--json"]) == 0
    [further] = json.loads(capsys.readouterr().out)["next"]
    assert "memory_00000005.prof" in " ".join(further["command"]), "the snapshot shows who holds the memory"
    for command in ("buffers", "advice"):
        assert main([command, str(tmp_path), "--json"]) == 0
        assert "memory_00000005.prof" in json.loads(capsys.readouterr().out)["recording"]


@pytest.mark.parametrize(
    ("noted", "first", "last"), [(True, "of step 5", "of step 90"), (False, "at 20.0 s", "at 6 min")]
)
def test_a_leak_names_the_line_that_grows_over_the_snapshots_of_its_device(
    noted: bool, first: str, last: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = live_file(tmp_path)
    steps = {at: at // 4 for at in range(0, 400, 4)}
    path.write_bytes(watch_bytes({"cuda:0": saw_tooth(400, growth=MIB)}, steps=steps))
    for step, losses in ((5, 2), (40, 70), (90, 80)):
        writer = Writer()
        writer.add(Sample([Frame("put", "/src/checkpoint.py", 88)], 500 * MIB))
        writer.add(Sample([Frame("train", "/src/train.py", 61)], losses * MIB, losses))
        writer.add(Sample([Frame("other", "/src/other.py", 7)], step * 3 * MIB, device="cuda:1"))
        writer.profile.time_nanos = START_NS + step * 4 * 10**9
        if noted:
            writer.profile.comment.append(writer.text(f'tb_memplugin {{"step": {step}, "devices": {{}}}}'))
        (path.parent / f"memory_{step:08d}.prof").write_bytes(writer.profile.SerializeToString())
    explain = ["explain", str(tmp_path), "--json"]
    assert main(explain) == 0
    line = f"a leak; most from train.py:61, 78.0 MiB of the 78.0 MiB between the snapshots {first} and {last}"
    answer = json.loads(capsys.readouterr().out)
    assert line in answer["headline"]
    assert answer["leaks"]["verdicts"] == {"leak": 1} and answer["leaks"]["unit"] == "step"
    [leak] = answer["leaks"]["findings"]
    assert (leak["verdict"], leak["site"], leak["row"]) == ("leak", "train.py:61", None)
    assert leak["bytes_per_step"] == pytest.approx(MIB, rel=0.05) and line in leak["sentence"]
    catalog = Catalog(str(tmp_path))
    [run] = catalog.runs()
    [curve] = [each for each in catalog.listing(run.name).recordings if each.kind is RecordingKind.WATCH]
    found = Client(MemoryApp(catalog)).get("/api/leaks", query_string={"id": curve.id}).json
    assert found is not None and found["message"].endswith(f"{line}.")
    for name in ("memory_00000040.prof", "memory_00000090.prof"):
        (path.parent / name).unlink()
    assert main(explain) == 0
    assert (
        "a leak; its lines are unknown, as this run has one snapshot" in json.loads(capsys.readouterr().out)["headline"]
    ), "there is only one"


def test_noise_and_a_new_phase_are_no_growth_however_many_samples_there_are() -> None:
    noise = np.random.default_rng(7).integers(0, 20 * MIB, 700).tolist()
    noisy = [{**one, DeviceColumn.IN_USE: 500 * MIB + more} for one, more in zip(saw_tooth(700), noise, strict=True)]
    phase = [{**one, DeviceColumn.IN_USE: (500 if row < 300 else 700) * MIB} for row, one in enumerate(noisy)]
    leak = [{**one, DeviceColumn.IN_USE: one[DeviceColumn.IN_USE] + row * MIB} for row, one in enumerate(noisy)]
    for count in range(100, 700, 30):
        grows = [(floor_growth(recording(samples[:count])) or pytest.fail()).grows for samples in (noisy, phase, leak)]
        assert grows == [False, False, True]


GROWING = {"private": "memray, or tracemalloc", "children": "memray run --follow-fork", "shm": "ls -lt /dev/shm"}


def host_file(growing: str, samples: int = 400) -> bytes:
    """Return a file of a host, one of whose parts grows by 1 MiB a sample, beside page cache that comes and goes."""
    own = {name: [200 * MIB + (row * MIB if name == growing else 0) for row in range(samples)] for name in GROWING}
    in_use = [sum(row) for row in zip(*own.values(), strict=True)]
    shared = [(row % 90) * 10 * MIB for row in range(samples)]
    used = [size + cache for size, cache in zip(in_use, shared, strict=True)]
    named = {("host", name): column for name, column in {**own, "shared": shared, "used": used}.items()}
    counters = [{DeviceColumn.IN_USE: size, DeviceColumn.LIMIT: 8192 * MIB} for size in in_use]
    steps = {at: at // 4 for at in range(0, samples, 4)}
    return watch_bytes({"host": counters, "cuda:0": saw_tooth(samples)}, named=named, steps=steps)


@pytest.mark.parametrize("growing", [*GROWING, ""])
def test_growth_of_the_host_is_a_leak_with_the_tool_that_shows_its_lines(
    growing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live_file(tmp_path).write_bytes(host_file(growing))
    assert main(["explain", str(tmp_path), "--recording", "watch|host", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["leaks"]["verdicts"] == ({"leak": 1} if growing else {"steady": 1})
    assert ("grows by 4.00 MiB per step" in answer["headline"]) is bool(growing)
    assert GROWING.get(growing, "") in answer["headline"]
    assert [one["holder"] for one in answer["ledger"]][:3] == ["Private", "Child processes", "/dev/shm"]
    assert sum(one["bytes"] for one in answer["ledger"]) == 8192 * MIB
    assert main(["explain", str(tmp_path)]) == 0
    assert "watch in cuda:0" in capsys.readouterr().out, "the host has more bytes, but is no device"
    assert main(["check", str(tmp_path), "--max-peak", "1GiB"]) == 0


def test_the_overview_has_the_leak_of_each_curve_in_the_words_of_explain(tmp_path: Path) -> None:
    live_file(tmp_path).write_bytes(host_file("private"))
    catalog = Catalog(str(tmp_path))
    [run] = catalog.runs()
    client = Client(MemoryApp(catalog))
    for question in ("overview", "overview_figures"):
        answer = client.get(f"/api/{question}", query_string={"run": run.name}).json
        assert answer is not None
        device, host = answer["rows"]
        assert (device["memory"], device["alarm"], host["memory"]) == ("cuda:0", "", "host")
        assert "grows by 4.00 MiB per step" in host["alarm"] and "tracemalloc" in host["alarm"]
        assert answer["headline"].endswith(f"host of host0_7: {host['alarm']}")
        assert "cuda:0 of host0_7 uses the largest share" in answer["headline"]


def test_the_ledger_over_time_keeps_the_fullest_moments_and_adds_up(tmp_path: Path) -> None:
    live_file(tmp_path).write_bytes(host_file("private", 2000))
    catalog = Catalog(str(tmp_path))
    [run] = catalog.runs()
    client = Client(MemoryApp(catalog))
    [host] = [one for one in catalog.listing(run.name).recordings if one.memory == "host"]
    found = client.get("/api/ledger", query_string={"id": host.id}).json
    assert found is not None and host.ledger is not None and len(found["time_ns"]) == 512
    table = np.array([holder["bytes"] for holder in found["holders"]])
    assert (table.sum(axis=0) == 8192 * MIB).all() and found["holders"][-1]["holder"] == "Free"
    assert table[:-1].sum(axis=0).max() == host.ledger.used.max()
    assert (np.diff(found["time_ns"]) > 0).all()
