"""`tb-memplugin serve`, run as a separate process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers import BIN, DEMO, Server, free_port, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port = free_port()
    command = [str(BIN / "tb-memplugin"), "serve", "--logdir", str(DEMO), "--port", str(port)]
    with running(command, port, tmp_path_factory.mktemp("standalone")) as server:
        yield server


def test_url_is_printed(server: Server) -> None:
    assert server.url in server.log.read_text()


def test_page_and_data_below_any_prefix(server: Server) -> None:
    for prefix in ("", "tb/", "proxy/8000/"):
        page = server.get(prefix)
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        runs = server.get(f"{prefix}api/runs")
        assert [run["name"] for run in json.loads(runs.body)["runs"]] != []


def test_unknown_paths_are_not_the_page(server: Server) -> None:
    for path in ("nothing", "api/nothing", "a/b/c", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "assets/"):
        answer = server.get(path)
        assert "root:" not in answer.text
        assert answer.status == (200 if path.endswith("/") else 404)


def test_a_port_in_use_is_one_line(server: Server, tmp_path: Path) -> None:
    import subprocess

    port = server.url.rstrip("/").rpartition(":")[2]
    done = subprocess.run(
        [str(BIN / "tb-memplugin"), "serve", "--logdir", str(tmp_path), "--port", port],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert port in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
