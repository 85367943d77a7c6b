"""The "Memory" tab in a real TensorBoard, next to the tab of tensorboard-plugin-profile."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.raw_http import exchange
from support.servers import BIN, DEMO, Server, free_port, running

from tb_memplugin.hosts.tensorboard import roots

LISTING = "data/plugins_listing"
MODES = {
    "default": ["--logdir", str(DEMO)],
    "load_fast": ["--logdir", str(DEMO), "--load_fast=true"],
    "load_slow": ["--logdir", str(DEMO), "--load_fast=false"],
    "logdir_spec": ["--logdir_spec", f"one:{DEMO}"],
}


@pytest.fixture(scope="module", params=MODES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Server]]:
    port = free_port()
    command = [str(BIN / "tensorboard"), *MODES[request.param], f"--port={port}"]
    with running(command, port, tmp_path_factory.mktemp("tensorboard"), ready=LISTING) as server:
        yield request.param, server


def test_both_tabs(server: tuple[str, Server]) -> None:
    mode, tensorboard = server
    listing = json.loads(tensorboard.get(LISTING).body)
    assert listing["memory"]["tab_name"] == "Memory"
    assert listing["memory"]["enabled"] is True
    assert listing["memory"]["disable_reload"] is True
    assert listing["memory"]["loading_mechanism"]["module_path"].endswith("data/plugin/memory/index.js")
    # The other plugin does not support --logdir_spec.
    assert listing["profile"]["enabled"] is (mode != "logdir_spec")


def test_data(server: tuple[str, Server]) -> None:
    mode, tensorboard = server
    runs = {run["name"] for run in json.loads(tensorboard.get("data/plugin/memory/api/runs").body)["runs"]}
    expected = "one/train_step/cpu" if mode == "logdir_spec" else "train_step/cpu"
    assert expected in runs
    answer = tensorboard.get(f"data/plugin/memory/api/recordings?run={expected}")
    assert json.loads(answer.body)["recordings"]
    tables = tensorboard.get("data/plugin/memory/api/nothing")
    assert tables.status == 404
    assert json.loads(tables.body)["error"]["where"] == "api/nothing"


def test_tensorboard_has_nothing_to_say_against_our_headers(server: tuple[str, Server]) -> None:
    _, tensorboard = server
    for path in ("index.html", "index.js", "api/runs", "none"):
        answer = tensorboard.get(f"data/plugin/memory/{path}")
        if answer.status == 200:
            again = tensorboard.get(f"data/plugin/memory/{path}", {"If-None-Match": answer.headers["ETag"]})
            assert again.status == 304
    assert "security" not in tensorboard.log.read_text().lower()


def test_a_rebound_name_gets_no_data(server: tuple[str, Server]) -> None:
    _, tensorboard = server
    data = "data/plugin/memory/api/runs"
    rebound = tensorboard.get(data, {"Host": "evil.example"})
    assert rebound.status == 403
    assert "TB_MEMPLUGIN_ALLOWED_HOSTS=evil.example" in json.loads(rebound.body)["error"]["remedy"]
    assert tensorboard.get("data/plugin/memory/index.js", {"Host": "evil.example"}).status == 200
    # Colab and JupyterHub, in a browser over HTTPS
    assert tensorboard.get(data, {"Host": "hub.example", "Sec-Fetch-Site": "same-origin"}).status == 200
    for name in ("localhost:1", "127.0.0.1", "[::1]:6006", "10.0.0.7"):
        assert tensorboard.get(data, {"Host": name}).status == 200, name


@pytest.mark.parametrize("option", ["--bind_all", "--host=0.0.0.0"])
def test_on_all_interfaces_names_are_tensorboards_own_matter(tmp_path: Path, option: str) -> None:
    port = free_port()
    command = [str(BIN / "tensorboard"), "--logdir", str(DEMO), f"--port={port}", option]
    with running(command, port, tmp_path, ready=LISTING) as tensorboard:
        assert tensorboard.get("data/plugin/memory/api/runs", {"Host": "tb.team.example"}).status == 200


def test_answers_have_one_date(server: tuple[str, Server]) -> None:
    _, tensorboard = server
    for path in (b"index.html", b"api/runs", b"api/none"):
        request = b"GET /data/plugin/memory/%s HTTP/1.0\r\nHost: localhost\r\n\r\n" % path
        assert exchange(tensorboard.url, request).lower().count(b"\r\ndate: ") == 1


def test_below_a_path_prefix(tmp_path: Path) -> None:
    port = free_port()
    command = [str(BIN / "tensorboard"), "--logdir", str(DEMO), f"--port={port}", "--path_prefix=/tb"]
    with running(command, port, tmp_path, ready=f"tb/{LISTING}") as tensorboard:
        assert json.loads(tensorboard.get("tb/data/plugin/memory/api/runs").body)["runs"]


def test_the_entry_module_imports_almost_nothing() -> None:
    code = (
        "import sys; import tb_memplugin.hosts.tensorboard; "
        "print(sorted(name for name in sys.modules if name.startswith('tb_memplugin') or name == 'numpy'))"
    )
    # TensorBoard itself is excluded, because it imports numpy.
    blocked = f"import sys; sys.modules['tensorboard.plugins'] = None; {code}"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['tb_memplugin', 'tb_memplugin.hosts', 'tb_memplugin.hosts.tensorboard']"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", {}),
        ("/a/b", {"a/b": "/a/b"}),
        ("x:/a,/b", {"x": "/a", "b": "/b"}),
        ("gs://bucket/a", {"gs://bucket/a": "gs://bucket/a"}),
        ("x:gs://bucket/a", {"x": "gs://bucket/a"}),
    ],
)
def test_logdir_spec(spec: str, expected: dict[str, str]) -> None:
    assert roots(SimpleNamespace(logdir="", flags=SimpleNamespace(logdir_spec=spec))) == expected


def test_a_context_of_nothing() -> None:
    from tb_memplugin.hosts.tensorboard import MemoryPluginLoader

    plugin = MemoryPluginLoader().load(SimpleNamespace(logdir=None, flags=None))
    assert plugin.is_active() is False
    assert list(plugin.get_plugin_apps()) == ["/*"]
