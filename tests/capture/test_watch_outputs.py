"""Samples in other programs: Prometheus metrics on loopback, and scalars that TensorBoard reads."""

from __future__ import annotations

import logging
import re
import socket
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from support.watch_files import MIB

from tb_memplugin.capture.watching import recorder, watch
from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.capture.watching.host_memory import HostMemory
from tb_memplugin.readers.watch_layout import CounterSource, WatchedDevice

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
        if found := re.search(r"served at http://127.0.0.1:(\d+)/metrics", log.text):
            return int(found[1])
        time.sleep(0.02)
    raise AssertionError(log.text)


def metrics_of(port: int, wanted: str) -> dict[str, float]:
    """Return the metrics of a server; waits until it has the wanted one."""
    for _ in range(3000):
        try:
            text = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
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
        urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)


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
