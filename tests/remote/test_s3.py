"""Logdirs in a local S3 server: the numbers of requests, and the answers of local files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from remote.test_folders import ODD
from remote.test_parts import space
from support.contents import contents
from support.in_process import InProcess
from support.servers import DEMO

from benchmarks.pods.pod import Pod
from benchmarks.pods.truth import Faults
from tb_memplugin import logdir
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_content, with_times
from tb_memplugin.errors import ReadError
from tb_memplugin.executors import LocalProcesses, TaskExecutor
from tb_memplugin.fleet.cache import SummaryCache
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.sessions import captures
from tb_memplugin.logdir import names, parts, remote_files
from tb_memplugin.model.fleet import Fleet
from tb_memplugin.readers.xplane import needed

s3fs = pytest.importorskip("s3fs", minversion="2024")  # older ones do not work with fsspec
server = pytest.importorskip("moto.server")
PROFILE = DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb"


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    started = server.ThreadedMotoServer(port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "key", "DEFAULT_REGION": "us-east-1"}.items():
            patch.setenv(f"AWS_{name}", value)
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        system = fsspec.filesystem("s3", skip_instance_cache=True)
        system.mkdir("bucket")
        yield system
    s3fs.S3FileSystem.clear_instance_cache()
    started.stop()


@pytest.fixture
def requests(store: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    real = s3fs.S3FileSystem._call_s3

    async def call(self: object, method: str, *args: object, **options: object) -> object:
        found.append(method)
        return await real(self, method, *args, **options)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", call)
    return found


def test_discovery_takes_one_request_and_a_small_file_another(store: Any, requests: list[str]) -> None:
    for run in ("a", "b"):
        store.pipe(f"bucket/two/{run}/plugins/profile/s/h.xplane.pb", PROFILE.read_bytes())
    requests.clear()
    catalog = Catalog("s3://bucket/two")
    runs = catalog.runs()
    assert requests == ["list_objects_v2"]
    requests.clear()
    listing = catalog.listing(runs[0].name)
    assert requests == ["list_objects_v2", "get_object"]
    file = runs[0].files[0]
    assert contents(listing) == contents(with_times(file, listing_of_content(file, runs[0].name, PROFILE.read_bytes())))


def test_looking_for_any_run_takes_few_requests(store: Any, requests: list[str]) -> None:
    for run in range(20):
        store.pipe(f"bucket/many/{run}/plugins/profile/s/h.xplane.pb", b"x")
    requests.clear()
    assert logdir.has_runs("s3://bucket/many")
    assert len(requests) == 6


def test_runs_of_an_odd_tree_are_those_found_by_walking(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (*ODD, "double//memory.prof", "/memory.prof", "train"):
        store.call_s3("put_object", Bucket="bucket", Key=f"odd/{path}", Body=b"x")
    at_once = logdir.find_all("s3://bucket/odd")
    monkeypatch.setattr(names, "FLAT_STORES", frozenset())
    walked = logdir.find_all("s3://bucket/odd")
    assert len(walked) == 9
    assert at_once == walked


def test_long_lines_are_left_out_and_a_changed_profile_is_refused(
    store: Any, requests: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needed, "MIN_SKIPPED_BYTES", 300)
    monkeypatch.setattr(parts, "BLOCK_BYTES", 256)
    monkeypatch.setattr(remote_files, "MIN_BYTES", 0)
    content = space().SerializeToString()
    store.pipe("bucket/parts/plugins/profile/s/h.xplane.pb", content)
    [run] = logdir.find_runs("s3://bucket/parts")
    read, _ = logdir.read_content(run.files[0])
    assert len(read) < 0.8 * len(content)
    assert requests[-1] == "head_object"
    store.pipe("bucket/parts/plugins/profile/s/h.xplane.pb", content.replace(b"jit_f", b"jit_g"))
    with pytest.raises(ReadError, match="changed while it was read"):
        logdir.read_content(run.files[0])


def scanned(logdir_: str, executor: TaskExecutor, cache: SummaryCache) -> Fleet:
    (capture,) = captures(logdir.find_runs(logdir_))
    return Scan(lambda: executor, cache).fleet(capture)


@pytest.mark.slow
def test_a_fleet_in_a_bucket_gets_the_answer_of_local_files(store: Any, tmp_path: Path) -> None:
    truth = Pod(6, 2, 2, faults=Faults(outliers=1, damaged=1, other_programs=1)).write(tmp_path / "log")
    for path in (tmp_path / "log").rglob("*.pb"):
        store.pipe(f"bucket/pod/{path.relative_to(tmp_path / 'log')}", path.read_bytes())
    cache, processes = SummaryCache(tmp_path / "cache"), LocalProcesses(2)
    found = scanned("s3://bucket/pod", processes, cache)
    processes.stop()
    local = scanned(str(tmp_path / "log"), InProcess(), SummaryCache(tmp_path / "local"))
    assert [(device.host, device.summary) for device in found.devices] == [
        (device.host, device.summary) for device in local.devices
    ]
    assert [(file.host, file.programs) for file in found.files] == [(file.host, file.programs) for file in local.files]
    assert [file.host for file in found.files if file.problem] == list(truth.damaged)
    again = InProcess()
    assert scanned("s3://bucket/pod", again, cache) == found and not again.functions
    path = next((tmp_path / "log").rglob("*.pb"))
    store.pipe(f"bucket/pod/{path.relative_to(tmp_path / 'log')}", path.read_bytes() + b"\x12\x00")
    scanned("s3://bucket/pod", again, cache)
    assert again.functions == ["summarize_files"]
