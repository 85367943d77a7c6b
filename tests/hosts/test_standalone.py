"""`tb-memplugin serve`, run as a separate process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.growth import grows_linearly
from support.raw_http import exchange
from support.servers import BIN, DEMO, Server, fetch, free_port, running
from werkzeug.test import EnvironBuilder

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.formats import FORMATS
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.standalone import BelowAnyPrefix


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port = free_port()
    command = [str(BIN / "tb-memplugin"), "serve", "--logdir", str(DEMO), "--port", str(port)]
    with running(command, port, tmp_path_factory.mktemp("standalone")) as server:
        yield server


def test_url_is_printed(server: Server) -> None:
    assert server.url in server.log.read_text()


def test_page_and_data_BelowAnyPrefix(server: Server) -> None:
    for prefix in ("", "tb/", "proxy/8000/"):
        page = server.get(prefix)
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        runs = server.get(f"{prefix}api/runs")
        assert [run["name"] for run in json.loads(runs.body)["runs"]] != []


def test_a_path_of_many_parts_takes_time_in_proportion_to_its_length() -> None:
    app = BelowAnyPrefix(MemoryApp(Catalog(str(DEMO))))

    def ask(parts: int) -> None:
        environ = {**EnvironBuilder().get_environ(), "PATH_INFO": "/T" * parts}
        assert b"No such page" in b"".join(app(environ, lambda *_: lambda _: None))

    assert grows_linearly(ask, 25_000)


def test_unknown_paths_are_not_the_page(server: Server) -> None:
    for path in ("nothing", "api/nothing", "a/b/c", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "assets/"):
        answer = server.get(path)
        assert "root:" not in answer.text
        assert answer.status == (200 if path.endswith("/") else 404)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--port=PORT_IN_USE"],
        ["--port=99999"],
        ["--port=-1"],
        ["--host=no.such.machine.invalid"],
        ["--host=a..b"],
        ["--host=203.0.113.1"],
    ],
)
def test_an_address_that_cannot_be_listened_on_is_one_line(server: Server, tmp_path: Path, wrong: list[str]) -> None:
    port = server.url.rstrip("/").rpartition(":")[2]
    options = [option.replace("PORT_IN_USE", port) for option in wrong]
    done = subprocess.run(
        [str(BIN / "tb-memplugin"), "serve", "--logdir", str(tmp_path), *options],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert options[0].partition("=")[2] in line
    assert "choose" in line


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0"])
def test_the_printed_url_is_that_of_a_free_port(host: str) -> None:
    if host == "::1" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    command = [str(BIN / "tb-memplugin"), "serve", "--logdir", str(DEMO), "--host", host, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http"))
        if host == "0.0.0.0":  # the URL has this machine's name, which need not resolve here
            url = f"http://127.0.0.1:{url.rpartition(':')[2]}"
        assert fetch(f"{url}api/runs").status == 200
        process.terminate()
        assert (process.wait(timeout=60), process.stderr.read()) == (0, "")


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_a_rebound_name_gets_neither_page_nor_data(server: Server) -> None:
    for path in ("", "index.html", "api/runs", "proxy/api/runs"):
        assert server.get(path, {"Host": "evil.example"}).status == 403
        assert server.get(path, {"Host": "localhost:1"}).status == 200
    post = b"POST /api/paste HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\nConnection: close\r\n"
    assert b" 403 " in exchange(server.url, post + b"Content-Length: 1\r\n\r\nx")


def test_a_page_of_another_site_may_not_frame_ours(server: Server) -> None:
    assert "frame-ancestors 'self'" in server.get("").headers["Content-Security-Policy"]


def test_a_proxys_name_that_it_was_told(tmp_path: Path) -> None:
    port = free_port()
    command = [str(BIN / "tb-memplugin"), "serve", "--logdir", str(DEMO), "--port", str(port)]
    with running([*command, "--allowed-host=hub.example", "--allowed-host=.dev.example"], port, tmp_path) as server:
        for name, status in {"hub.example": 200, "a.dev.example": 200, "example": 403}.items():
            assert server.get("api/runs", {"Host": name}).status == status, name


def test_answers_have_one_date(server: Server) -> None:
    for path in (b"", b"api/runs", b"none"):
        answer = exchange(server.url, b"GET /%s HTTP/1.0\r\nHost: localhost\r\n\r\n" % path)
        assert answer.lower().count(b"\r\ndate: ") == 1


def test_the_readers_and_the_endpoints_are_imported_before_the_server_listens() -> None:
    """The first request would wait for them."""
    code = """
import sys
from tb_memplugin.hosts import standalone
def listen(*_): print(*sys.modules); sys.exit()
standalone.listen = listen
standalone.serve(sys.argv[1], "127.0.0.1", 0)
"""
    ran = subprocess.run([sys.executable, "-c", code, str(DEMO)], check=True, capture_output=True, text=True)
    readers = {known.opener.partition(":")[0] for known in FORMATS}
    assert readers | {"tb_memplugin.questions.kinds.first_view"} <= set(ran.stdout.split())
