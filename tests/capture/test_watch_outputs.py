"""Samples in other programs: Prometheus metrics on loopback, and scalars that TensorBoard reads."""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from support.servers import REPOSITORY
from support.watch_files import MIB, START_NS

from tb_memplugin.capture.watching import Watch, recorder, watch
from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.capture.watching.gauges import GAUGES
from tb_memplugin.capture.watching.host_memory import HostMemory
from tb_memplugin.capture.watching.recorder import SampleRecorder, WatchClock
from tb_memplugin.readers.watch_layout import CounterSource, MemoryPart, WatchedDevice

GPUS = [
    Reading(WatchedDevice("cuda:0", CounterSource.MEMORY_STATS), (600 * MIB, 800 * MIB, 1000 * MIB, 100 * MIB, 0)),
    Reading(WatchedDevice("cuda:1", CounterSource.TORCH), (500 * MIB, 500 * MIB, 1000 * MIB, -1, 700 * MIB)),
]


@pytest.fixture(autouse=True)
def devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "read_devices", lambda: GPUS)
    monkeypatch.setattr(HostMemory, "read", lambda memory: [])


def logged_port(log: pytest.LogCaptureFixture) -> int:
    """Return the port that the log names; waits for that line."""
    for _ in range(1000):
        if found := re.search(r"served at http://[\d.]+:(\d+)/metrics", log.text):
            return int(found[1])
        time.sleep(0.02)
    raise AssertionError(log.text)


def metrics_of(port: int, wanted: str) -> dict[str, float]:
    """Return the metrics of a server; waits until it has the wanted one."""
    for _ in range(3000):
        try:
            text = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
        except URLError:
            text = ""
        if f"tb_memplugin_{wanted}" in text:
            break
        time.sleep(0.02)
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name.removeprefix("tb_memplugin_"): float(value) for name, _, value in lines}


def test_prometheus_reads_the_latest_sample_on_loopback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("prometheus_client")
    caplog.set_level(logging.INFO, "tb_memplugin.capture")
    with watch(str(tmp_path), every=0.01, port=0) as watched:
        watched.step(7)
        port = logged_port(caplog)
        found = metrics_of(port, "step")
        with socket.socket() as other, pytest.raises(OSError):
            other.settimeout(2)
            other.connect((other_address(), port))
    assert found == {
        'memory_in_use_bytes{device="cuda:0"}': 600 * MIB,
        'memory_in_use_bytes{device="cuda:1"}': 500 * MIB,
        'memory_peak_bytes{device="cuda:0"}': 800 * MIB,
        'memory_peak_bytes{device="cuda:1"}': 500 * MIB,
        'memory_limit_bytes{device="cuda:0"}': 1000 * MIB,
        'memory_limit_bytes{device="cuda:1"}': 1000 * MIB,
        'memory_largest_free_block_bytes{device="cuda:0"}': 100 * MIB,
        'memory_reserved_bytes{device="cuda:0"}': 0,
        'memory_reserved_bytes{device="cuda:1"}': 700 * MIB,
        'memory_fragmentation_ratio{device="cuda:0"}': 0.75,
        "step": 7,
    }
    with pytest.raises(URLError):
        urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60)


def test_other_machines_read_the_metrics_where_the_job_asks_for_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("prometheus_client")
    caplog.set_level(logging.INFO, "tb_memplugin.capture")
    address = other_address()
    with watch(str(tmp_path), every=0.01, port=0, host="0.0.0.0"):
        port = logged_port(caplog)
        assert b"tb_memplugin" in urlopen(f"http://{address}:{port}/metrics", timeout=60).read()
    assert f"http://0.0.0.0:{port}/metrics" in caplog.text


def leaking_recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRecorder:
    """Return a recorder of a job whose host leaks 1 MiB a step, beside a device that stays as it is."""
    recorded, step = SampleRecorder(str(tmp_path), 10**9, 0.9, WatchClock()), [0]
    parts = {"private": 300 * MIB, "used": 600 * MIB, "phase train": 7}
    host = WatchedDevice("host", CounterSource.PROC)
    monkeypatch.setattr(
        HostMemory, "read", lambda memory: [Reading(host, ((300 + step[0]) * MIB, -1, 1000 * MIB, -1, -1), parts)]
    )
    recorded.has_readers = True
    for second in range(400):
        step[0] = second // 4
        monkeypatch.setattr(recorded._clock, "now_ns", lambda now=second: START_NS + now * 10**9)
        recorded.sample((step[0], START_NS + step[0] * 4 * 10**9))
    recorded.measure_growth()
    recorded.sample((100, START_NS + 400 * 10**9))
    return recorded


def test_growth_leaks_and_the_ledger_of_the_host_are_gauges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gauges = leaking_recorder(tmp_path, monkeypatch).gauges
    found = {gauge.path.removeprefix("tb_memplugin/"): gauge.value for gauge in gauges}
    assert found["memory_part_bytes/host/private"] == 300 * MIB and found["memory_part_bytes/host/used"] == 600 * MIB
    assert (found["memory_leak/host"], found["memory_leak/cuda:0"]) == (1, 0)
    assert found["memory_growth_bytes_per_step/host"] == pytest.approx(MIB, rel=0.05)
    assert found["memory_growth_bytes_per_step/cuda:0"] == 0
    assert not [name for name in found if "phase" in name], "a phase has a level while it runs only"
    assert {name.split("/")[0] for name in found} <= GAUGES.keys()


def test_examples_for_prometheus_and_grafana_name_metrics_that_exist() -> None:
    folder = REPOSITORY / "examples" / "prometheus"
    names = {f"tb_memplugin_{name}" for name in GAUGES}
    used = set()
    for file in ("alerts.yml", "grafana.json"):
        text = (folder / file).read_text()
        used |= (found := set(re.findall(r"\btb_memplugin_\w+", text)))
        assert found and found <= names, file
        for parts in re.findall(r'part=~?\\*"([^"\\]*)', text):
            assert set(parts.split("|")) <= {*MemoryPart, "process .*"}, parts
    assert {f"tb_memplugin_{name}" for name in ("memory_leak", "memory_growth_bytes_per_step", "step")} <= used
    dashboard = json.loads((folder / "grafana.json").read_text())
    assert len(dashboard["panels"]) == len({panel["id"] for panel in dashboard["panels"]})
    yaml = pytest.importorskip("yaml")
    rules = yaml.safe_load((folder / "alerts.yml").read_text())["groups"][0]["rules"]
    assert all({"alert", "expr", "annotations"} <= rule.keys() for rule in rules)


def gauges_of_a_job(watched: Watch) -> dict[str, float]:
    """Return the gauges of a sample of a marked step; waits for it."""
    watched.step(7)
    for _ in range(500):
        if "tb_memplugin/step" in (found := watched.gauges()):
            return found
        time.sleep(0.02)
    raise AssertionError("no gauges")


def test_other_loggers_get_the_same_figures(tmp_path: Path) -> None:
    watched = watch(str(tmp_path), every=0.01)
    assert watched.gauges() == {}
    with watched:
        found = gauges_of_a_job(watched)
    assert found["tb_memplugin/memory_in_use_bytes/cuda:0"] == 600 * MIB and found["tb_memplugin/step"] == 7
    assert watched.gauges() == {}


def test_weights_and_biases_logs_them(tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb")
    with watch(str(tmp_path / "logs"), every=0.01) as watched, wandb.init(mode="offline", dir=tmp_path) as run:
        gauges_of_a_job(watched)
        wandb.log(watched.gauges())
        assert run.summary["tb_memplugin/memory_in_use_bytes/cuda:0"] == 600 * MIB


def test_mlflow_logs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # needs no database
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "mlflow").as_uri())
    with watch(str(tmp_path / "logs"), every=0.01) as watched, mlflow.start_run() as run:
        gauges_of_a_job(watched)
        mlflow.log_metrics(watched.gauges())
    assert mlflow.get_run(run.info.run_id).data.metrics["tb_memplugin/memory_in_use_bytes/cuda:0"] == 600 * MIB


def other_address() -> str:
    """Return an address of this machine that is not loopback; skip where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        try:
            found.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("there is no network")
        return str(found.getsockname()[0])


def test_a_port_in_use_and_a_missing_package_are_lines_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("prometheus_client")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with watch(str(tmp_path / "a"), every=0.01, port=taken.getsockname()[1]):
            time.sleep(0.1)
    assert "memory is not served as metrics" in caplog.text and "Address already in use" in caplog.text
    for module in ("metrics", "scalars"):
        monkeypatch.delitem(sys.modules, f"tb_memplugin.capture.watching.{module}", raising=False)
    for package in ("prometheus_client", "tensorboard.compat.proto.event_pb2"):
        monkeypatch.setitem(sys.modules, package, None)
    with watch(str(tmp_path / "b"), every=0.01, port=9, tensorboard=True):
        time.sleep(0.1)
    assert "pip install 'tb-memplugin[watch]'" in caplog.text and "pip install tensorboard" in caplog.text
    assert list(tmp_path.rglob("*.watch"))


def test_tensorboard_reads_the_curves_as_scalars(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

    with watch(str(tmp_path), every=0.01, tensorboard=True) as watched:
        for number in range(5, 9):
            watched.step(number)
            time.sleep(0.1)
    [file] = tmp_path.rglob("*tfevents*")
    assert file.parent == next(tmp_path.rglob("*.watch")).parent
    found = EventAccumulator(str(file.parent))
    found.Reload()
    tags = found.SummaryMetadata("memory (GiB)/cuda:0 in use")
    assert tags.plugin_data.plugin_name == "scalars"
    values = found.Tensors("memory (GiB)/cuda:0 in use")
    steps = [value.step for value in values]
    assert steps == sorted(steps) and steps[-1] == 8
    assert values[-1].tensor_proto.float_val[0] == pytest.approx(600 / 1024)


def test_without_steps_the_axis_is_seconds(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

    begun = time.monotonic()
    with watch(str(tmp_path), every=0.01, tensorboard=True):
        time.sleep(1.2)
    seconds = time.monotonic() - begun
    [file] = tmp_path.rglob("*tfevents*")
    found = EventAccumulator(str(file.parent))
    found.Reload()
    assert 1 <= max(value.step for value in found.Tensors("memory (GiB)/cuda:1 peak")) <= seconds
