"""Files that are dropped on the page: sent in pieces, read in memory, and listed as runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.servers import DEMO, TESTS
from werkzeug.test import Client

from tb_memplugin import formats
from tb_memplugin.catalog import uploads
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp

PAGE = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
PROFILE = DEMO / "train_step" / "plugins" / "profile" / "cpu" / "localhost.xplane.pb"
ERROR = TESTS / "data" / "oom_texts" / "tpu_compile.txt"
PIECE = 100_000


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(MemoryApp(Catalog(str(tmp_path))))


def send(client: Client, name: str, content: bytes, *, key: str = "1", size: int | None = None) -> Any:
    """Send a file in pieces; return the last answer."""
    for at in range(0, len(content), PIECE):
        query = {"key": key, "name": name, "size": size or len(content), "at": at}
        piece = content[at : at + PIECE]
        answer = client.post("/api/open_file", query_string=query, data=piece, headers=PAGE).json
        assert answer is not None
        if answer["message"] is not None:
            break
    return answer


def runs(client: Client) -> list[str]:
    answer = client.get("/api/runs").json
    assert answer is not None
    return [run["name"] for run in answer["runs"]]


def files() -> list[Path]:
    """Return a small file of each format of the demo."""
    found = sorted((path for path in DEMO.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    suffixes = (".xplane.pb", ".hlo.pb.gz", ".prof", ".pickle", ".memory.json.gz", ".oom.txt")
    first = (next((path for path in found if path.name.endswith(suffix)), None) for suffix in suffixes)
    return [path for path in first if path is not None]


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_a_file_of_each_format_becomes_a_run_with_its_recordings(path: Path, client: Client, tmp_path: Path) -> None:
    answer = send(client, path.name, path.read_bytes())
    assert answer["message"] is None
    assert runs(client) == [answer["run"]]
    listed = client.get("/api/recordings", query_string={"run": answer["run"]}).json
    assert listed is not None and listed["recordings"] == answer["recordings"] != []
    for recording in answer["recordings"]:
        assert client.get("/api/rows", query_string={"id": recording["id"]}).status_code == 200
    assert client.get("/api/overview", query_string={"run": answer["run"]}).status_code == 200
    assert os.listdir(tmp_path) == []


def test_the_same_file_is_the_same_run(client: Client) -> None:
    first, again = (send(client, ERROR.name, ERROR.read_bytes(), key=key) for key in "12")
    assert first["run"] == again["run"]
    assert len(runs(client)) == 1


def test_a_name_is_only_a_label(client: Client, tmp_path: Path) -> None:
    (tmp_path / "secret.oom.txt").write_bytes(ERROR.read_bytes())
    for name in ("../secret.oom.txt", str(tmp_path / "secret.oom.txt"), "a|b\x00\n\u202e.oom.txt", "x" * 5000 + ".txt"):
        answer = send(client, name, b"no error")
        assert answer["recordings"] == [] and "No out-of-memory error" in answer["message"], json.dumps(answer)
        answer = send(client, name, ERROR.read_bytes())
        assert len(answer["recordings"]) == 1
        assert len(answer["run"]) <= 120 and "|" not in answer["run"] and answer["run"].isprintable()


@pytest.mark.parametrize("content", [b"\x00" * 100, PROFILE.read_bytes()[:1000]])
def test_a_file_that_cannot_be_read_is_a_message(content: bytes, client: Client) -> None:
    answer = send(client, "x.xplane.pb", content)
    assert answer["recordings"] == [] and "cannot be shown" in answer["message"]
    assert runs(client) == []


def test_an_unknown_format_is_named(client: Client) -> None:
    assert "unknown file type" in send(client, "notes.docx", b"x")["message"]


def test_pieces_arrive_in_order(client: Client) -> None:
    for at, size in ((5, 10), (-1, 10), (0, 2)):
        query = {"key": "1", "name": "x.txt", "size": size, "at": at}
        answer = client.post("/api/open_file", query_string=query, data=b"12345", headers=PAGE)
        assert answer.status_code == 400 or (answer.json is not None and "not received" in answer.json["message"])


def test_another_site_cannot_send(client: Client) -> None:
    query = {"key": "1", "name": "x.txt", "size": 1, "at": 0}
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert client.post("/api/open_file", query_string=query, data=b"x", headers=headers).status_code == 403


def test_files_that_are_being_sent_are_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 250_000)
    assert "too large" in send(client, "x.txt", b"x", size=250_001)["message"]
    begun = {key: send(client, "x.txt", b"x" * PIECE, key=key, size=2 * PIECE) for key in "12"}
    assert begun["1"]["received"] == PIECE and "Other files" in begun["2"]["message"]
    for key, expected in (("2", "not received"), ("1", "No out-of-memory")):
        query = {"key": key, "name": "x.txt", "size": 2 * PIECE, "at": PIECE}
        answer = client.post("/api/open_file", query_string=query, data=b"x" * PIECE, headers=PAGE).json
        assert answer is not None and expected in answer["message"], key


def test_a_log_of_any_size_is_sent_and_its_first_error_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a log of eleven pieces, of which a server keeps two, with an error in the first piece alone."""
    known = next(known for known in formats.FORMATS if known.excerpts)
    short = known._replace(end_bytes=2 * PIECE)
    monkeypatch.setattr(formats, "FORMATS", tuple(short if one is known else one for one in formats.FORMATS))
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 3 * PIECE)
    error = b"CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    answer = send(client, "train.log", error + b"step 1 loss 2.5\n" * (10 * PIECE // 16))
    [recording] = answer["recordings"]
    assert recording["memory"] == "CUDA" and any(caveat["code"] == "only_end_read" for caveat in recording["caveats"])
