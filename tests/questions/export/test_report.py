"""Reports: their data equals the server's answers, and only the page's own script runs in them."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import subprocess
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.payload_decoder import decode
from support.servers import DATA, DEMO
from werkzeug.test import Client

from benchmarks import generate
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.hosts import report
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.questions.asking.endpoint import ENDPOINTS

WHOLE = {"usage", "details", "joins"}  # answers for every window, row and position
FUSED = DATA / "xplane" / "tracelens_te_fused_attn"
LEAK, LOSS = "leak/cpu|localhost|allocator|cpu:0 live arrays", "train_step/cpu|localhost|jit_loss(2)|HBM"


class Document(HTMLParser):
    """Parse a report as a browser does: elements, the text of each script by its attributes, the answers by request."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.title = ""
        self.policy = ""
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(content)
        self.close()
        answers = [text for attributes, text in self.scripts if "data-answer" in attributes]
        [index] = [text for attributes, text in self.scripts if "data-report" in attributes]
        self.index: dict[str, Any] = json.loads(unpacked(index))
        self.answers = {key: unpacked(answers[number]) for key, number in self.index["answers"].items()}
        assert len(self.answers) == len(answers)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append((attributes, ""))
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"] and data.strip():
            attributes, text = self.scripts.pop()
            self.scripts.append((attributes, text + data))
        if self.tags[-1:] == ["title"]:
            self.title += data.strip()


def unpacked(text: str) -> bytes:
    return gzip.decompress(b64decode(text, validate=True))


def written(path: Path, wanted: str = "", title: str = "t") -> Document:
    every, to = listing_of_path(str(path)).recordings, io.BytesIO()
    chosen = [recording for recording in every if wanted in recording.id]
    written = report.Report(title, chosen, every, report.MAX_BYTES)
    to.writelines(written.pieces())
    held, size = len(written.contained), to.tell()
    assert (held, size) == (len(chosen), len(to.getvalue()))
    return Document(to.getvalue().decode())


@pytest.fixture(scope="module")
def document() -> Document:
    return written(DEMO)


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(MemoryApp(Catalog(str(DEMO))))


def asked(client: Client, route: str, **query: str | int) -> Any:
    answer = client.get(f"/api/{route}", query_string=query)
    assert answer.status_code == 200
    return answer.json


def parts(key: str) -> tuple[str, dict[str, str]]:
    route, *query = key.split("&")
    return route, dict(part.split("=", 1) for part in query)


@pytest.mark.slow
def test_every_answer_is_the_servers(document: Document, client: Client) -> None:
    routes = set()
    for key, content in document.answers.items():
        route, query = parts(key)
        routes.add(route)
        if route in WHOLE | {"runs", "recordings"}:
            continue
        answer = client.get(f"/api/{route}", query_string=query)
        assert answer.status_code == 200, key
        assert answer.get_data() == content, key
    assert routes == {
        "runs", "recordings", "overview", "rows", "details", "advice", "tree", "memory_viewer", "memory_profile",
        "leaks", "joins", "device_profile", "growth", "callgraph", "failed_program", "fit", "verdict", "times",
        "time_tables",
    }  # fmt: skip


def test_it_lists_what_the_server_lists(document: Document, client: Client) -> None:
    for run in asked(client, "runs")["runs"]:
        asked(client, "recordings", run=run["name"])  # a server states the peak of runs that it has read
    runs = sorted(asked(client, "runs")["runs"], key=lambda run: str(run["name"]), reverse=True)
    reported = json.loads(document.answers["runs"])["runs"]
    # A recording does not have the time of its file.
    assert reported == [{**run, "hosts": sorted(run["hosts"]), "modified_ns": None} for run in runs]
    found = 0
    for run in runs:
        listed = json.loads(document.answers[f"recordings&run={run['name']}"])["recordings"]
        assert listed == asked(client, "recordings", run=run["name"])["recordings"]
        found += len(listed)
    assert (document.index["recordings"], document.index["of"]) == (found, found)
    assert document.index["axes"] == ["INSTANT", "PROGRAM_ORDER", "TIME"]


@pytest.mark.parametrize(("logdir", "recording"), [(DEMO, LOSS), (FUSED, "run|934987a2fc2f|allocator|GPU_0_bfc")])
def test_what_is_known_of_every_row(logdir: Path, recording: str) -> None:
    if not logdir.exists():
        pytest.skip(f"no {logdir}")
    document, client = written(logdir, recording), Client(MemoryApp(Catalog(str(logdir))))
    meta, tables = decode(document.answers[f"details&id={recording}"])
    _, everything = decode(document.answers[f"rows&id={recording}"])
    frames, region = tables["frames"], everything["rows"]["region"]

    def stack(leaf: int) -> list[dict[str, Any]]:
        above = [] if leaf < 0 else stack(frames["parent"][leaf])
        return above if leaf < 0 else [{n: frames[n][leaf] for n in ("function", "file", "line")}, *above]

    stacks = 0
    for row, leaf in enumerate(tables["rows"]["stack"]):
        details = asked(client, "details", id=recording, row=row)
        assert stack(leaf) == details["stack"]
        assert stack(tables["rows"]["freed_stack"][row]) == details["freed_stack"]
        index = everything["regions"]["index"][region[row]] if region[row] >= 0 else None
        assert index == (details["region"] and details["region"]["index"])
        plan = tables["rows"]["planned"][row]
        assert (meta["planned"][plan] if plan >= 0 else None) == details.get("planned")
        stacks += bool(details["stack"])
    assert stacks
    assert bool(meta["planned"]) == (logdir == FUSED)


def test_the_programs_that_run_at_every_event(document: Document, client: Client) -> None:
    whole = json.loads(document.answers[f"joins&id={LEAK}"])
    length = len(decode(document.answers[f"rows&id={LEAK}"])[1]["program"]["name"])
    assert length > 100
    for position in range(-1, length):
        last = max(i for i, start in enumerate(whole["start"]) if start <= position)
        expected = asked(client, "joins", id=LEAK, at=position)
        assert {**whole["answers"][whole["answer"][last]], "at": position} == expected


@pytest.mark.slow
def test_the_curve_has_every_position(tmp_path: Path) -> None:
    generate.write(tmp_path, 5000)
    document = written(tmp_path)
    [key] = [key for key in document.answers if key.startswith("usage&")]
    curve = decode(document.answers[key])[1]["usage"]
    answer = Client(MemoryApp(Catalog(str(tmp_path)))).get(
        "/api/usage", query_string={**parts(key)[1], "buckets": 8192}
    )
    assert curve["position"] == [*range(len(curve["position"]))]
    assert 4096 < len(curve["position"]) <= 8192
    assert decode(answer.get_data())[1]["usage"] == curve


def test_a_chosen_recording_is_all_there_is(client: Client) -> None:
    document = written(DEMO, LOSS)
    assert document.index["recordings"] == 1 < document.index["of"]
    assert document.index["axes"] == ["PROGRAM_ORDER"]
    assert {parts(key)[1].get("id", LOSS) for key in document.answers} == {LOSS}
    overview = json.loads(document.answers["overview&run=train_step/cpu"])
    assert [row["id"] for row in overview["rows"]] == [LOSS]
    assert overview["together"] == [] != asked(client, "overview", run="train_step/cpu")["together"]
    assert not any("jit_train_step(0)" in content.decode(errors="replace") for content in document.answers.values())


def test_a_file_stands_for_a_run() -> None:
    document = written(DEMO / "device_profile" / "memory.prof")
    [run] = json.loads(document.answers["runs"])["runs"]
    assert run["name"] == "memory.prof"
    assert len(json.loads(document.answers["recordings&run=memory.prof"])["recordings"]) == document.index["of"]


def test_only_the_pages_own_script_runs(document: Document) -> None:
    runs = [(a, text) for a, text in document.scripts if a.get("type") != "text/plain"]
    [(attributes, script)] = runs
    assert attributes == {"type": "module"}
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = dict(part.split(" ", 1) for part in document.policy.split("; "))
    assert policy["script-src"] == f"'sha256-{digest}'"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert not re.search(r"https?:|\*|'self'|unsafe|connect", document.policy)
    assert set(document.tags) == {"html", "head", "meta", "link", "title", "body", "p", "script"}


@pytest.mark.parametrize("code", ["a='</script>'", "a='<!-- <script'", "a=`</SCRIPT >`"])
def test_a_script_does_not_end_in_the_middle(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.js").write_text(code)
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    [(_, script), *_] = written(DEMO, "jit_loss(2)").scripts
    assert script == re.sub("<(?=/|!)", r"\\x3c", code)


def test_markup_stays_text() -> None:
    hostile = "</title><script>alert(1)</script>\ud800"
    document = written(DEMO, "jit_loss(2)", hostile)
    assert document.title == hostile.replace("\ud800", "?")
    assert len([a for a, _ in document.scripts if a.get("type") != "text/plain"]) == 1


def test_what_fails_costs_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise InputError("broken", "tree", "none")

    before = written(DEMO, "jit_loss(2)").answers
    monkeypatch.setitem(ENDPOINTS, "tree", replace(ENDPOINTS["tree"], function=fail))
    after = written(DEMO, "jit_loss(2)").answers
    assert {key for key in before if key not in after} == {key for key in before if key.startswith("tree&")}


def test_a_page_that_is_not_built_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    with pytest.raises(InputError, match="has not been built"):
        written(DEMO, "jit_loss(2)")


def run(*arguments: object, limit: int = report.MAX_BYTES) -> str:
    """Run `tb-memplugin export` in a separate process and return its output."""
    code = "import sys; from tb_memplugin import cli; from tb_memplugin.hosts import report; "
    code += f"report.MAX_BYTES = {limit}; sys.exit(cli.main())"
    command = [sys.executable, "-c", code, "export", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout


def test_the_command_writes_it_and_says_what_it_holds(tmp_path: Path) -> None:
    logs, file = tmp_path / "logs", tmp_path / "report.html"
    shutil.copytree(DEMO / "train_step", logs / "train_step")
    before = [(path, path.stat().st_mtime_ns) for path in sorted(logs.rglob("*"))]
    assert run(logs, "--to", file).endswith("KiB, 2 recordings\n")
    assert Document(file.read_text()).title == "Memory report of logs"
    assert run(logs, "--to", file, "--recording", "jit_l", "--force").endswith("KiB, 1 recording\n")
    assert Document(file.read_text()).index["recordings"] == 1
    assert [(path, path.stat().st_mtime_ns) for path in sorted(logs.rglob("*"))] == before


def test_the_largest_come_first_and_the_rest_is_said_to_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert "the 1 largest of 2 recordings" in run(DEMO / "train_step", "--to", file, limit=1)
    document = Document(file.read_text())
    assert (document.index["recordings"], document.index["of"]) == (1, 2)
    assert "rows&id=cpu|localhost|jit_train_step(0)|HBM" in document.answers
    # A recording requested by name is included, whatever its size.
    assert "2 recordings" in run(DEMO / "train_step", "--to", file, "--recording", "jit", "--force", limit=1)
    assert Document(file.read_text()).index["recordings"] == 2
