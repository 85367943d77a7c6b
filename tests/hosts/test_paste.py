"""Texts sent to the server: permissions, size limits, and how they are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.servers import TESTS
from werkzeug.test import Client, TestResponse

from tb_memplugin.catalog import uploads
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts import http_messages
from tb_memplugin.hosts.api import MemoryApp

TEXT = (TESTS / "data" / "oom_texts" / "tpu_compile.txt").read_bytes()
LINE = b"RESOURCE_EXHAUSTED: Out of memory while trying to allocate %d bytes."
PAGE = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(MemoryApp(Catalog(str(tmp_path))))


def paste(client: Client, text: bytes = TEXT, headers: dict[str, str] | None = None) -> TestResponse:
    return client.post("/api/paste", data=text, headers=PAGE if headers is None else headers)


def test_a_text_becomes_a_run_with_all_views(client: Client) -> None:
    answer = paste(client).json
    assert answer is not None and answer["message"] is None
    assert answer["explanation"][:2] == [
        "The program needs 19.3 GiB of HBM, which has 15.8 GiB.",
        "That is 3.50 GiB too much.",
    ]
    (recording,) = answer["recordings"]
    assert recording["kind"] == "oom" and recording["run"] == answer["run"] != ""
    runs = client.get("/api/runs").json
    unknown = {"modified_ns": None, "peak_bytes": None}
    pasted = {"name": answer["run"], "hosts": [""], **unknown, "by_host": False, "sessions": 1, "host_count": 0}
    assert runs is not None and runs["runs"] == [pasted]
    listed = client.get("/api/recordings", query_string={"run": answer["run"]}).json
    assert listed is not None and listed["recordings"] == [recording]
    for route in ("memory_viewer", "rows", "usage", "details?row=0", "tree?by=model&merge=0"):
        path, _, query = route.partition("?")
        parameters = dict(part.split("=") for part in query.split("&") if part)
        assert client.get(f"/api/{path}", query_string={"id": recording["id"], **parameters}).status_code == 200, route


def test_the_same_text_is_the_same_run(client: Client) -> None:
    first, again, other = paste(client).json, paste(client).json, paste(client, LINE % 1_000_000).json
    assert first is not None and again is not None and other is not None
    assert first["run"] == again["run"] != other["run"]


def test_another_text_says_that_there_is_nothing_in_it(client: Client) -> None:
    answer = paste(client, b"step 1 loss 2.0")
    assert answer.status_code == 200 and answer.json is not None
    assert answer.json["recordings"] == [] and "No out-of-memory error" in answer.json["message"]
    runs = client.get("/api/runs").json
    assert runs is not None and runs["runs"] == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (PAGE, 200),
        ({}, 200),  # curl
        ({"Origin": "http://localhost"}, 200),  # an old browser
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxy.example"}, 200),  # a proxy changed the host
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),  # another port of this machine
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:8080"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_only_our_own_page_may_send(client: Client, headers: dict[str, str], status: int) -> None:
    assert paste(client, headers=headers).status_code == status


def test_a_text_that_is_too_large_is_not_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_messages, "MAX_BODY_BYTES", len(TEXT) - 1)
    answer = paste(client)
    assert answer.status_code == 413 and answer.json is not None
    assert answer.json["error"]["what"] == "The text is too large"


def test_a_text_of_unknown_length_is_not_read(client: Client) -> None:
    answer = paste(client, headers={**PAGE, "Transfer-Encoding": "chunked"})
    assert answer.status_code == 411


def test_only_this_route_takes_what_is_sent(client: Client) -> None:
    for path in ("/api/runs", "/api/rows", "/index.html", "/", "/no/such/page"):
        answer = client.post(path, data=TEXT, headers=PAGE)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        answer = client.open("/api/paste", method=method, headers=PAGE)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_the_oldest_go_when_there_are_too_many(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_TEXTS", 3)
    names = []
    for size in range(1, 6):
        answer = paste(client, LINE % (size * 10**6)).json
        assert answer is not None
        names.append(answer["run"])
    runs = client.get("/api/runs").json
    assert runs is not None and [run["name"] for run in runs["runs"]] == names[:1:-1]
    assert client.get("/api/recordings", query_string={"run": names[0]}).status_code == 404


def test_the_largest_go_when_they_hold_too_much(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_PASTED_BYTES", 1)
    kept = [paste(client, LINE % (size * 10**6)).json for size in (1, 2)]
    runs = client.get("/api/runs").json
    assert runs is not None and kept[-1] is not None
    assert [run["name"] for run in runs["runs"]] == [kept[-1]["run"]]


def test_nothing_is_written(client: Client, tmp_path: Path) -> None:
    paste(client)
    assert os.listdir(tmp_path) == []
