"""Answers that are kept: what a repeated request costs, and that none is older than what it was made of."""

from __future__ import annotations

import gc
import json
import os
import shutil
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.servers import DEMO
from werkzeug.test import Client, create_environ

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.answer_cache import OVERHEAD_BYTES, AnswerCache
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.http_messages import Finished
from tb_memplugin.hosts.sources import catalog_source
from tb_memplugin.questions.asking.endpoint import ENDPOINTS
from tb_memplugin.questions.asking.source import Reads, Source

RUN = "train_step/cpu"
PROFILE = "plugins/profile/cpu/localhost.xplane.pb"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    shutil.copytree(DEMO / "train_step", tmp_path / "train_step")
    return tmp_path


@pytest.fixture
def client(logs: Path) -> Client:
    return Client(MemoryApp(Catalog(str(logs))))


def first_id(client: Client, run: str = RUN) -> str:
    listing = client.get("/api/recordings", query_string={"run": run}).json
    assert listing is not None
    found: str = listing["recordings"][0]["id"]
    return found


def count_calls(monkeypatch: pytest.MonkeyPatch, route: str) -> list[int]:
    """Return a list that grows with each call of an endpoint."""
    endpoint, calls = ENDPOINTS[route], list[int]()

    def counted(*arguments: object) -> object:
        calls.append(1)
        return endpoint.function(*arguments)

    monkeypatch.setitem(ENDPOINTS, route, replace(endpoint, function=counted))
    return calls


def test_a_repeated_request_is_answered_without_the_endpoint(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"id": first_id(client)}
    calls = count_calls(monkeypatch, "rows")
    first = client.get("/api/rows", query_string=query)
    again = client.get("/api/rows", query_string={**query, "unknown": "parameter"}, headers={"Accept-Encoding": "gzip"})
    unchanged = client.get("/api/rows", query_string=query, headers={"If-None-Match": first.headers["ETag"]})
    assert (first.status_code, again.status_code, unchanged.status_code) == (200, 200, 304)
    assert again.headers["ETag"] == first.headers["ETag"]
    assert len(calls) == 1


def test_other_parameters_are_another_answer(client: Client) -> None:
    query = {"id": first_id(client), "by": "model"}
    merged = client.get("/api/tree", query_string={**query, "merge": "1"})
    assert client.get("/api/tree", query_string={**query, "merge": "0"}).data != merged.data


def test_every_change_of_the_logdir_is_seen_at_once(client: Client, logs: Path) -> None:
    def runs() -> set[str]:
        answer = client.get("/api/runs").json
        assert answer is not None
        return {run["name"] for run in answer["runs"]}

    def programs(run: str) -> int:
        answer = client.get("/api/recordings", query_string={"run": run})
        return len(json.loads(answer.data).get("recordings", []))

    assert runs() == {RUN} and programs(RUN) > 0
    shutil.copytree(DEMO / "leak", logs / "leak")
    assert runs() == {RUN, "leak/cpu"} and programs("leak/cpu") > 0
    recording = first_id(client)
    before = client.get("/api/rows", query_string={"id": recording}).data
    shutil.copy(DEMO / "scan_remat" / PROFILE, logs / "train_step" / PROFILE)
    os.utime(logs / "train_step" / PROFILE, (1, 1))
    assert client.get("/api/rows", query_string={"id": recording}).data != before
    (logs / "train_step" / PROFILE).write_bytes(b"damaged")
    assert programs(RUN) == 0
    assert client.get("/api/rows", query_string={"id": recording}).status_code == 404
    shutil.rmtree(logs / "leak")
    assert client.get("/api/recordings", query_string={"run": "leak/cpu"}).status_code == 404


def test_errors_are_not_kept(client: Client, logs: Path) -> None:
    profile = logs / "train_step" / PROFILE
    profile.rename(logs / "elsewhere")
    assert client.get("/api/recordings", query_string={"run": RUN}).status_code == 404
    (logs / "elsewhere").rename(profile)
    assert client.get("/api/recordings", query_string={"run": RUN}).status_code == 200


def test_concurrent_requests_share_one_making(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = first_id(client)
    calls = count_calls(monkeypatch, "advice")
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: client.get("/api/advice", query_string={"id": recording}).data, range(16)))
    assert len(set(answers)) == 1
    assert len(calls) == 1


def kept(body: bytes) -> Callable[[Source], Finished]:
    return lambda _: Finished(body, [])


def test_the_latest_answers_stay_within_the_limit() -> None:
    source = catalog_source(Catalog({}))
    cache = AnswerCache(10 * (100 + OVERHEAD_BYTES))
    for number in range(50):
        cache.answer((str(number),), source, kept(b"x" * 100))
        cache.answer(("0",), source, kept(b"x" * 100))
        assert cache.nbytes <= 10 * (100 + OVERHEAD_BYTES)
    assert ("0",) in cache and ("49",) in cache and ("1",) not in cache
    cache.answer(("large",), source, kept(b"x" * 10_000))
    assert ("large",) not in cache and ("49",) in cache


def test_an_answer_does_not_keep_its_recordings(logs: Path) -> None:
    catalog = Catalog(str(logs))
    client = Client(MemoryApp(catalog))
    recording = first_id(client)
    client.get("/api/rows", query_string={"id": recording})
    gone = weakref.ref(catalog.recording(recording))
    assert gone() is not None
    os.utime(logs / "train_step" / PROFILE, (1, 1))
    catalog.recording(recording)  # the catalog drops the earlier version
    gc.collect()
    assert gone() is None


def test_a_slow_answer_does_not_delay_others(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"id": first_id(client)}
    client.get("/api/rows", query_string=query)
    entered, leave = threading.Event(), threading.Event()

    def slow(*_: object) -> dict[str, int]:
        entered.set()
        leave.wait(60)
        return {}

    monkeypatch.setitem(ENDPOINTS, "advice", replace(ENDPOINTS["advice"], function=slow))
    with ThreadPoolExecutor(1) as threads:
        delayed = threads.submit(client.get, "/api/advice", query_string=query)
        assert entered.wait(60)
        assert client.get("/api/rows", query_string=query).status_code == 200
        leave.set()
        assert delayed.result(60).status_code == 200


def test_what_a_request_reads_is_known_before_it_is_answered(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = MemoryApp(Catalog(str(logs)))
    client = Client(app)

    def reads(path: str, **query: str) -> object:
        return app.reads(create_environ(path, query_string=query))

    assert [reads(path) for path in ("/", "/api/progress", "/api/runs")] == [
        Reads.NOTHING,
        Reads.NOTHING,
        Reads.LISTING,
    ]
    assert reads("/api/report", run=RUN) is Reads.LARGE_FILES
    recording = first_id(client)
    assert reads("/api/rows", id=recording) is Reads.SMALL_FILES, "the answer must be made"
    client.get("/api/rows", query_string={"id": recording})
    assert reads("/api/rows", id=recording) is Reads.NOTHING
    os.utime(logs / "train_step" / PROFILE, (1, 1))
    assert reads("/api/rows", id=recording) is Reads.SMALL_FILES
    monkeypatch.setattr("tb_memplugin.hosts.api.SMALL_BYTES", 1000)
    assert reads("/api/rows", id=recording) is Reads.LARGE_FILES
    assert reads("/api/rows", id="unknown") is Reads.SMALL_FILES
