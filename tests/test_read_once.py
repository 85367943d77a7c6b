"""Listing a run and its first view read and parse each file once, also for requests that come at the same time."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from support.servers import DATA, DEMO
from werkzeug.test import Client

from tb_memplugin import readers
from tb_memplugin.catalog import catalog as catalog_module
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import Listing, read_file
from tb_memplugin.errors import Abandoned, abandoned_when, end_if_abandoned
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.logdir import HostFile, files
from tb_memplugin.logdir.names import HLO_PROTO
from tb_memplugin.logdir.parts import count_bytes
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.hlo.reserved import HEAD_BYTES

FILES = [
    DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb",
    DEMO / "h100_train_step",
    DEMO / "device_profile",
    DEMO / "v5e_train_step",
    DEMO / "v5e_out_of_memory",
    DATA / "hlo/tracelens_jit__multi_slice.hlo_proto.pb",
    DATA / "xplane/xprof_demo_gpu_multi_worker/plugins/profile/GPU-multi-worker/34.83.195.179_6003.xplane.pb",
    DATA / "torch_snapshot/bcrafton_memory_snapshot.pickle",
    DATA / "torch_trace/Qwen_Qwen1.5-0.5B-Chat__1016005.pt.trace.json.gz",
]
FORMATS = [path for path in FILES if path.exists()]  # real profiles lie beside the repository, or nowhere
VIEWS = {"PROGRAM_ORDER": "memory_viewer", "TIME": "memory_profile", "INSTANT": "device_profile"}  # by axis
REQUESTS_AT_ONCE = 3


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the bytes read, and how often each file is opened and each of its parts parsed."""
    found: Counter[str] = Counter()
    open_file = readers.open_file

    def counted(part: FilePart) -> FilePart:
        def read() -> Any:
            found[f"parsed {part.source} {part.title}"] += 1
            return part.read()

        return part._replace(read=read)

    def opened(data: bytes, path: str, **about: Any) -> list[FilePart]:
        found[f"opened {path}"] += 1
        return [counted(part) for part in open_file(data, path, **about)]

    def bytes_read(count: int) -> None:
        found["bytes"] += count
        count_bytes(count)

    monkeypatch.setattr(readers, "open_file", opened)
    monkeypatch.setattr(files, "count_bytes", bytes_read)
    return found


def first_view(client: Client) -> None:
    """Ask as the page does: for the runs, the recordings of the newest, and the first view of the largest."""

    def get(route: str, **query: str) -> bytes:
        answer = client.get(f"/api/{route}", query_string=query)
        assert answer.status_code == 200
        return bytes(answer.data)

    run = json.loads(get("runs"))["runs"][0]["name"]
    largest = json.loads(get("recordings", run=run))["recordings"][0]
    get(VIEWS[largest["axis"]], id=largest["id"])


@pytest.mark.parametrize("path", FORMATS, ids=lambda path: path.name)
@pytest.mark.parametrize("requests", [1, REQUESTS_AT_ONCE], ids=["alone", "at_once"])
def test_a_run_and_its_first_view_read_and_parse_each_file_once(
    path: Path, requests: int, tmp_path: Path, counts: Counter[str]
) -> None:
    run = tmp_path / "run"
    if path.is_dir():
        shutil.copytree(path, run)
    else:
        folder = run / "plugins/profile/session" if path.name.endswith(".xplane.pb") else run
        folder.mkdir(parents=True)
        shutil.copy(path, folder)
    app, together = MemoryApp(Catalog(str(tmp_path))), Barrier(requests)

    def ask(_: int) -> None:
        together.wait()
        first_view(Client(app))

    with ThreadPoolExecutor(requests) as pool:
        list(pool.map(ask, range(requests)))
    read = [file for file in run.rglob("*") if f"opened {file}" in counts]
    sizes = {file: os.path.getsize(file) for file in read}
    # The beginning of a program in a file of its own has its module's name, which the list of the run needs.
    heads = 0 if path.is_dir() or not path.name.endswith(HLO_PROTO) else min(*sizes.values(), HEAD_BYTES)
    assert read and counts.pop("bytes") == sum(sizes.values()) + heads
    assert {name: count for name, count in counts.items() if count > 1} == {}
    assert sum(name.startswith("parsed") for name in counts) >= len(read)


def test_a_file_is_read_again_where_the_request_that_read_it_was_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, reading, waits = Catalog(str(DEMO)), Event(), Event()
    run = next(run for run in catalog.runs() if run.name == "device_profile")

    def read_slowly(file: HostFile, run: str) -> Listing:
        if not reading.is_set():
            reading.set()
            assert waits.wait(60)
            end_if_abandoned()
        return read_file(file, run)

    def abandoned() -> None:
        with abandoned_when(lambda: True):
            catalog.listing_of_run(run)

    monkeypatch.setattr(catalog_module, "read_file", read_slowly)
    monkeypatch.setattr(catalog_module, "end_if_abandoned", lambda: None)  # of a request that waits for its turn
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(abandoned)
        assert reading.wait(60)
        second = pool.submit(catalog.listing_of_run, run)
        waits.set()
        with pytest.raises(Abandoned):
            first.result(60)
        assert len(second.result(60).recordings) == 1
