"""The answers about fleets that a server gives, while it reads and after."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.in_process import no_processes as no_processes
from support.payload_decoder import decode
from werkzeug.test import Client

from benchmarks.pods.pod import Pod, write_trend
from benchmarks.pods.truth import Faults
from tb_memplugin import cli
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.numbered_names import natural_key

pytestmark = pytest.mark.slow  # each scan reads many files


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TB_MEMPLUGIN_FLEET_CACHE", str(tmp_path / "cache"))


def until_read(client: Client, path: str, load: Any) -> Any:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = load(client.get(path).data)
        if not (found[0] if isinstance(found, tuple) else found)["running"]:
            return found
        time.sleep(0.05)
    raise TimeoutError


def test_a_row_for_each_device_and_the_answer_beside_it(tmp_path: Path) -> None:
    truth = Pod(8, 2, 0.5, faults=Faults(outliers=1, missing=1, damaged=1)).write(tmp_path / "log")
    client = Client(MemoryApp(Catalog(str(tmp_path / "log"))))
    meta, tables = until_read(client, "/api/fleet", decode)
    devices = tables["devices"]
    peaks = {(h, d): p for h, d, p in zip(devices["host"], devices["device"], devices["peak_bytes"], strict=True)}
    assert peaks == {(device.host, device.memory): device.peak_bytes for device in truth.devices}
    assert (meta["done"], meta["total"], meta["problem"]) == (7, 7, "")
    assert meta["capture"]["missing"] == truth.missing
    (memory,) = meta["capture"]["memories"]
    assert [far["host"] for far in memory["outliers"]] == [truth.outliers[0].host]
    assert sum(devices["outlier"]) == 1 and memory["devices"] == []
    assert [capture["hosts"] for capture in meta["captures"]] == [7]
    far = devices["outlier"].index(1)
    assert memory["outliers"][0]["causes"][0]["text"] == devices["cause"][far]
    assert [bool(cause) for cause in devices["cause"]] == list(map(bool, devices["outlier"]))
    hosts = dict(zip(tables["hosts"]["host"], tables["hosts"]["state"], strict=True))
    assert list(hosts) == sorted(hosts, key=natural_key) and set(truth.missing) < set(hosts)
    assert sorted(hosts.values()) == ["missing", *["read"] * 6, "unreadable"]
    assert [problem for problem in tables["hosts"]["problem"] if problem] == [meta["capture"]["problems"][0]["text"]]


@pytest.mark.usefixtures("no_processes")
def test_the_page_has_the_lines_of_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Pod(8, 2, 0.5, skew_seconds=9, faults=Faults(outliers=1, missing=1, damaged=1)).write(tmp_path / "log")
    meta, _ = until_read(Client(MemoryApp(Catalog(str(tmp_path / "log")))), "/api/fleet", decode)
    cli.main(["fleet", str(tmp_path / "log")])
    printed = capsys.readouterr().out
    assert meta["heading"] in printed and meta["joined"] in printed and meta["joined"]
    assert "   ".join(meta["texts"]["HBM"]["worst"]) in printed and meta["texts"]["HBM"]["median"] in printed


@pytest.mark.usefixtures("no_processes")
def test_each_session_of_a_capture_names_it(tmp_path: Path) -> None:
    Pod(8, 1, 0.5, skew_seconds=9).write(tmp_path / "log")
    client = Client(MemoryApp(Catalog(str(tmp_path / "log"))))
    meta, _ = until_read(client, "/api/fleet", decode)
    sessions = [session["name"] for session in meta["capture"]["sessions"]]
    assert len(sessions) > 1
    assert (
        decode(client.get("/api/fleet", query_string={"capture": sessions[-1]}).data)[0]["heading"] == meta["heading"]
    )


@pytest.mark.usefixtures("no_processes")
def test_a_device_of_the_answer_is_a_recording(tmp_path: Path) -> None:
    Pod(2, 1, 0.5).write(tmp_path / "log")
    client = Client(MemoryApp(Catalog(str(tmp_path / "log"))))
    meta, tables = until_read(client, "/api/fleet", decode)
    row = {name: column[0] for name, column in tables["devices"].items()}
    ids = ["|".join((row["run"], row["host"], row["title"], row["device"])), meta["typical"]["HBM"]]
    for one in ids:
        assert client.get("/api/memory_profile", query_string={"id": one}).status_code == 200


@pytest.mark.usefixtures("no_processes")
def test_the_trend(tmp_path: Path) -> None:
    truth = write_trend(Pod(1, 1, 0.5), tmp_path / "log", 3)
    client = Client(MemoryApp(Catalog(str(tmp_path / "log"))))
    found = until_read(client, "/api/fleet_trend?by=day", json.loads)
    memory = found["series"][0]
    changed = [point["day"] for point in memory["points"] if point["changes"]]
    assert changed == [truth.changed]


@pytest.mark.usefixtures("no_processes")
def test_an_unknown_capture_is_an_error(tmp_path: Path) -> None:
    Pod(1, 1, 0.5).write(tmp_path / "log")
    client = Client(MemoryApp(Catalog(str(tmp_path / "log"))))
    assert client.get("/api/fleet?capture=nothing").status_code == 404
    assert (
        Client(MemoryApp(Catalog(str(tmp_path)))).get("/api/fleet?capture=log/run42/2026_11_23_04_07_01").status_code
        == 200
    )
