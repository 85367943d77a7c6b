"""The WSGI app that every host mounts."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.allocators import Block, allocator
from support.servers import DEMO
from werkzeug.test import Client, TestResponse

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts import http_messages, static
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.questions.asking.endpoint import ENDPOINTS
from tb_memplugin.questions.kinds import first_view as memory_viewer
from tb_memplugin.questions.recording import tables, usage

RUN = "train_step/cpu"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog(str(DEMO))


@pytest.fixture(scope="module")
def client(catalog: Catalog) -> Client:
    return Client(MemoryApp(catalog))


def error_of(answer: TestResponse) -> dict[str, str]:
    assert answer.mimetype == "application/json"
    assert answer.json is not None
    error: dict[str, str] = answer.json["error"]
    assert set(error) == {"what", "where", "remedy"}
    return error


def largest(client: Client) -> dict[str, Any]:
    answer = client.get("/api/recordings", query_string={"run": RUN})
    assert answer.json is not None
    first: dict[str, Any] = answer.json["recordings"][0]
    return first


def test_runs() -> None:
    answer = Client(MemoryApp(Catalog(str(DEMO)))).get("/api/runs").json  # that has read no run, and knows no peak
    assert answer is not None
    assert answer["logdir"] == str(DEMO)
    [run] = [run for run in answer["runs"] if run["name"] == RUN]
    modified = (DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb").stat().st_mtime_ns
    facts = {"name": RUN, "hosts": ["localhost"], "modified_ns": modified, "peak_bytes": None}
    assert run == {**facts, "by_host": False, "sessions": 1, "host_count": 1}
    assert answer["message"] is None


def test_an_empty_logdir_says_why_and_what_to_do(tmp_path: Path) -> None:
    answer = Client(MemoryApp(Catalog(str(tmp_path)))).get("/api/runs")
    assert answer.status_code == 200
    assert answer.json is not None
    assert answer.json["runs"] == []
    assert str(tmp_path) in answer.json["message"]


def test_recordings_largest_first(client: Client) -> None:
    answer = client.get("/api/recordings", query_string={"run": RUN}).json
    assert answer is not None
    peaks = [recording["peak_bytes"] for recording in answer["recordings"]]
    assert peaks == sorted(peaks, reverse=True) != []
    assert answer["problems"] == []


def test_a_damaged_host_costs_only_itself(tmp_path: Path) -> None:
    run = tmp_path / "plugins/profile/run"
    run.mkdir(parents=True)
    shutil.copy(DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb", run / "good.xplane.pb")
    for name, content in {"empty": b"", "text": b"not a profile", "zero": bytes(1000)}.items():
        (run / f"{name}.xplane.pb").write_bytes(content)
    answer = Client(MemoryApp(Catalog(str(tmp_path)))).get("/api/recordings?run=run").json
    assert answer is not None
    assert {recording["host"] for recording in answer["recordings"]} == {"good"}
    assert sorted(Path(problem["file"]).name for problem in answer["problems"]) == [
        "empty.xplane.pb",
        "text.xplane.pb",
        "zero.xplane.pb",
    ]
    assert all(problem["text"] for problem in answer["problems"])


def test_tables(client: Client, catalog: Catalog) -> None:
    recording = catalog.recording(largest(client)["id"])
    window = {"from": "10", "to": "20", "buckets": "5"}
    for path, parameters, expected in (
        ("/api/memory_viewer", {}, memory_viewer.first_view(recording)),
        ("/api/rows", {}, tables.rows(recording)),
        ("/api/usage", window, usage.usage(recording, 10, 20, 5)),
    ):
        answer = client.get(path, query_string={"id": recording.id, **parameters})
        assert answer.data[:4] == b"TBM1"
        assert answer.data == expected


def test_details(client: Client) -> None:
    answer = client.get("/api/details", query_string={"id": largest(client)["id"], "row": 0})
    assert answer.json is not None
    assert answer.json["row"] == 0


def test_leaks(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"id": largest(client)["id"]}
    nothing = client.get("/api/leaks", query_string=query).json
    assert nothing is not None
    assert (nothing["findings"], nothing["steps"]) == ([], 0)
    assert "over time" in nothing["message"]
    leaking = allocator([Block(site, size, step, None) for step in range(9) for site, size in (("a", 1), ("b", 8))], 9)
    monkeypatch.setattr(Catalog, "recording", lambda *_: leaking)
    answer = client.get("/api/leaks", query_string=query).json
    assert answer is not None
    assert answer["message"] is None
    assert [(each["verdict"], each["bytes_per_step"]) for each in answer["findings"]] == [("leak", 8), ("leak", 1)]
    assert answer["findings"][0]["sentence"].startswith("Grows by 8 B per step")


@pytest.mark.parametrize(
    ("path", "status", "where"),
    [
        ("/api/recordings", 400, "run"),
        ("/api/recordings?run=none", 404, "none"),
        ("/api/recordings?run=../../etc", 404, "../../etc"),
        (f"/api/recordings?run={RUN}&host=none", 404, "none"),
        ("/api/memory_viewer", 400, "id"),
        ("/api/memory_viewer?id=none", 404, "none"),
        ("/api/rows?id=%00", 404, "\0"),
        ("/api/leaks", 400, "id"),
        ("/api/leaks?id=none", 404, "none"),
        ("/api/details?id={id}", 400, "row"),
        ("/api/details?id={id}&row=x", 400, "row=x"),
        ("/api/details?id={id}&row=-1", 400, "row=-1"),
        ("/api/details?id={id}&row=1000000", 400, "row=1000000"),
        ("/api/usage?id={id}&from=20&to=10", 400, "to=10"),
        ("/api/usage?id={id}&buckets=0", 400, "buckets=0"),
        ("/api/usage?id={id}&buckets=99999999", 400, "buckets=99999999"),
        ("/api/tree?id={id}", 400, "by"),
        ("/api/tree?id={id}&by=mood", 400, "by=mood"),
        ("/api/tree?id={id}&by=model&merge=2", 400, "merge=2"),
        ("/api/callgraph?id={id}&by=function&whole=1", 400, "whole=1"),
        ("/api/overview", 400, "run"),
        ("/api/nothing", 404, "api/nothing"),
        ("/../pyproject.toml", 404, "../pyproject.toml"),
        ("/assets/../../api.py", 404, "assets/../../api.py"),
    ],
)
def test_wrong_calls(client: Client, path: str, status: int, where: str) -> None:
    answer = client.get(path.replace("{id}", largest(client)["id"].replace("/", "%2F").replace("|", "%7C")))
    assert answer.status_code == status
    assert error_of(answer)["where"] == where


def test_only_reading(client: Client) -> None:
    for method in ("POST", "PUT", "DELETE"):
        answer = client.open("/api/runs", method=method)
        assert answer.status_code == 405
        assert answer.headers["Allow"] == "GET, HEAD"
    assert client.head("/api/runs").data == b""


def test_a_failure_of_ours_is_no_traceback(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise ZeroDivisionError("secret detail")

    recording = largest(client)
    monkeypatch.setitem(ENDPOINTS, "tree", replace(ENDPOINTS["tree"], function=fail))
    answer = client.get("/api/tree", query_string={"id": recording["id"], "by": "model"})
    assert answer.status_code == 500
    error_of(answer)
    assert b"secret detail" not in answer.data


def test_unchanged_answers_are_not_sent_again(client: Client) -> None:
    query = {"id": largest(client)["id"]}
    first = client.get("/api/rows", query_string=query)
    again = client.get("/api/rows", query_string=query, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    other = client.get("/api/memory_viewer", query_string=query)
    assert other.headers["ETag"] != first.headers["ETag"]


def test_compressed_where_the_client_can(client: Client) -> None:
    query = {"id": largest(client)["id"]}
    plain = client.get("/api/rows", query_string=query)
    packed = client.get("/api/rows", query_string=query, headers={"Accept-Encoding": "br, gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert len(packed.data) < len(plain.data)
    plain = client.get("/api/rows", query_string=query, headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in plain.headers


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a built page of a few files, independent of the state of the real build."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>page</title>")
    (tmp_path / "assets" / "a.js").write_text("export {}")
    (tmp_path / "assets" / "a.css").write_text("")
    for function in (static.names, static.response):
        monkeypatch.setattr(function, "__defaults__", (tmp_path,))
    yield tmp_path


def test_files_of_the_page(client: Client, page: Path) -> None:
    assert client.get("/").text == client.get("/index.html").text == "<!doctype html><title>page</title>"
    types = {path: client.get(path).mimetype for path in ("/index.html", "/assets/a.js", "/assets/a.css")}
    assert types == {"/index.html": "text/html", "/assets/a.js": "text/javascript", "/assets/a.css": "text/css"}


def test_headers_that_browsers_and_tensorboard_ask_for(client: Client, page: Path) -> None:
    for path in ("/index.html", "/assets/a.js", "/api/runs", "/none"):
        answer = client.get(path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Type"]
    policy = client.get("/index.html").headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe-eval" not in policy


def test_a_page_that_was_not_built_says_so(client: Client, page: Path) -> None:
    (page / "index.html").unlink()
    answer = client.get("/")
    assert answer.status_code == 503
    assert "not been built" in answer.text


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    run = tmp_path / "plugins/profile/<img src=x onerror=alert(1)>"
    run.mkdir(parents=True)
    (run / "h.xplane.pb").write_bytes(b"")
    client = Client(MemoryApp(Catalog(str(tmp_path))))
    for path in ("/api/runs", "/api/recordings?run=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "/api/%3Cimg%3E"):
        answer = client.get(path)
        assert answer.mimetype == "application/json"
        json.loads(answer.data)


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        http_messages.finished({"figure": float("nan")})
