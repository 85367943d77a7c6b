"""XProf's own server with our page in it, run as a process: pages, lists and numbers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from support import xprof_contract
from support.servers import BIN, DEMO, REPOSITORY, TESTS, Server
from support.xprof_server import PREFIX, serving
from werkzeug.test import Client
from werkzeug.wrappers import Response

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts import xprof
from tb_memplugin.questions.xprof import memory_viewer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

RUN = "train_step/cpu"
MODULE = "jit_train_step(0)"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo runs in a writable folder, and a run with a damaged host before a valid one."""
    root = tmp_path_factory.mktemp("logs")
    shutil.copytree(DEMO, root, dirs_exist_ok=True)
    damaged = root / "plugins/profile/damaged"
    damaged.mkdir(parents=True)
    (damaged / "a.xplane.pb").write_bytes(b"not a profile at all")
    shutil.copy(root / "train_step/plugins/profile/cpu/localhost.xplane.pb", damaged / "b.xplane.pb")
    return root


@pytest.fixture(scope="module")
def server(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(logs, tmp_path_factory.mktemp("xprof")) as server:
        yield server


def data(server: Server, **parameters: str) -> dict[str, object]:
    answer = server.get(f"{PREFIX}data?{urlencode({'tag': 'memory_viewer', **parameters})}")
    assert answer.status == 200, answer.text
    content: dict[str, object] = json.loads(answer.body)
    return content


def test_xprof_still_has_the_functions_that_we_replace() -> None:
    xprof_contract.check()


@pytest.mark.parametrize("release", ["xprof==2.24.0", "xprof-nightly==2.25.0a20261027"])
def test_so_have_the_oldest_and_the_newest_release_that_we_support(
    release: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("release")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={folder}", release]
    installed = subprocess.run(pip, capture_output=True, text=True, timeout=300)
    if installed.returncode:
        assert os.environ.get("CI") != "true", installed.stderr
        pytest.skip(f"{release} cannot be installed here")
    path = os.pathsep.join([str(folder), str(REPOSITORY), str(TESTS)])
    done = subprocess.run(
        [sys.executable, "-m", "support.xprof_contract"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == release.partition("==")[2], done.stderr


def test_a_seam_that_moved_is_refused() -> None:
    from types import ModuleType

    moved = ModuleType("xprof.server")
    with pytest.raises(InputError, match="serve"):
        xprof.install(moved)
    moved.make_wsgi_app = lambda plugin, options: None  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="serve"):
        xprof.install(moved)


def stock(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer like an XProf that fails on some routes."""
    path = environ["PATH_INFO"]
    if path.endswith("module_list"):
        raise RuntimeError("XProf's own fault")
    if path.endswith("run_tools"):
        return Response("fault", 500)(environ, start_response)
    if path.endswith("data"):
        return Response("stock data")(environ, start_response)
    return Response("<head></head>", content_type="text/html")(environ, start_response)


def test_faults_of_xprof_are_not_ours() -> None:
    client = Client(xprof.XProfApp(stock, str(DEMO), tested=True))
    assert MODULE in client.get(f"/module_list?run={RUN}").text
    assert "memory_viewer" in client.get(f"/run_tools?run={RUN}").text
    for route in ("module_list", "run_tools"):
        assert client.get(f"/{route}?run=none").status_code == 500


def test_faults_of_ours_are_not_xprofs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> dict[str, object]:
        raise ZeroDivisionError

    monkeypatch.setattr(memory_viewer, "memory_viewer", fail)
    client = Client(xprof.XProfApp(stock, str(DEMO), tested=True))
    assert client.get(f"/data?tag=memory_viewer&run={RUN}&module_name={MODULE}").text == "stock data"


def test_without_a_logdir_xprof_answers() -> None:
    """Start the server without a logdir, to open any folder by session_path."""
    client = Client(xprof.XProfApp(stock, "", tested=True))
    assert client.get("/data?tag=memory_viewer&session_path=/x&module_name=m").text == "stock data"
    assert client.get("/memory/api/runs").status_code == 200


def test_another_version_is_left_as_it_is_but_for_a_link() -> None:
    client = Client(xprof.XProfApp(stock, str(DEMO), tested=False))
    assert 'data-tested="False"' in client.get("/").text
    assert client.get(f"/data?tag=memory_viewer&run={RUN}&module_name={MODULE}").text == "stock data"
    assert client.get("/memory/api/runs").status_code == 200


@pytest.mark.parametrize("path", ["", "index.html", PREFIX, f"{PREFIX}memory_viewer", f"{PREFIX}index.html"])
def test_pages_carry_our_script_once(server: Server, path: str) -> None:
    page = server.get(path, {"Accept-Encoding": "gzip"})
    assert page.status == 200
    assert page.text.count('<script src="memory/xprof.js" data-tested="True"></script>') == 1


@pytest.mark.parametrize("path", ["styles.css", "zone.js", f"{PREFIX}version", f"{PREFIX}config"])
def test_the_rest_is_stock(server: Server, path: str) -> None:
    answer = server.get(path)
    assert answer.status == 200
    assert "xprof.js" not in answer.text


@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_our_routes(server: Server, prefix: str) -> None:
    runs = server.get(f"{prefix}memory/api/runs")
    assert RUN in {run["name"] for run in json.loads(runs.body)["runs"]}
    assert server.get(f"{prefix}memory/api/nothing").status == 404
    assert server.get(f"{prefix}memory/index.html").headers["Content-Security-Policy"]


def test_lists(server: Server) -> None:
    assert RUN in json.loads(server.get(f"{PREFIX}runs").body)
    assert "memory_viewer" in json.loads(server.get(f"{PREFIX}run_tools?run={RUN}").body)
    assert json.loads(server.get(f"{PREFIX}hosts?run={RUN}&tag=memory_viewer").body) == [{"hostname": "localhost"}]
    assert MODULE in server.get(f"{PREFIX}module_list?run={RUN}").text.split(",")


def test_a_damaged_first_host_hides_nothing(server: Server) -> None:
    """Check our list: XProf alone lists no tools and no modules for such a run."""
    assert "memory_viewer" in json.loads(server.get(f"{PREFIX}run_tools?run=damaged").body)
    assert MODULE in server.get(f"{PREFIX}module_list?run=damaged").text.split(",")
    assert data(server, run="damaged", module_name=MODULE)["moduleName"] == "jit_train_step"


def test_numbers_are_ours_in_the_form_of_xprof(server: Server, logs: Path) -> None:
    recordings = Catalog(str(logs)).listing(RUN).recordings
    module = [recording for recording in recordings if recording.title == MODULE]
    expected = json.loads(json.dumps(memory_viewer.memory_viewer(module, 0)))
    by_name = data(server, run=RUN, module_name=MODULE)
    assert by_name == expected
    session = logs / "train_step/plugins/profile/cpu"
    for same in (
        {"host": "localhost"},
        {"host": "ALL_HOSTS"},
        {"memory_space": "0"},
        {"memory_space": "nonsense"},
        {"use_saved_result": "false"},
        {"program_id": "2"},  # module_name takes precedence
        {"session_path": str(session), "run": "cpu"},
        {"run_path": str(session.parent), "run": "cpu"},
    ):
        assert data(server, **{"run": RUN, "module_name": MODULE, **same}) == by_name, same
    assert data(server, run=RUN, program_id="0") == by_name
    assert data(server, run=RUN, program_id="2")["moduleName"] == "jit_loss"
    assert set(data(server, run=RUN, module_name=MODULE, memory_space="1")) == {"moduleName", "entryComputationName"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"module_name": "none"},
        {"module_name": ""},
        {"program_id": "20", "module_name": ""},
        {"module_name": "../../../scan_remat/plugins/profile/cpu/jit_loss(2)"},
        {"run": "none"},
        {"run": "../x"},
        {"host": "none"},
        {"session_path": "{logs}/../outside"},
        {"session_path": "{logs}/outside"},
        {"run_path": "{logs}/.."},
    ],
)
def test_what_is_not_there_is_404_in_words(server: Server, logs: Path, wrong: dict[str, str]) -> None:
    parameters = {"tag": "memory_viewer", "run": RUN, "module_name": MODULE}
    parameters |= {name: value.replace("{logs}", str(logs)) for name, value in wrong.items()}
    answer = server.get(f"{PREFIX}data?{urlencode(parameters)}")
    assert answer.status in (404, 500)  # XProf itself answers 500 for a missing folder
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "Traceback" not in answer.text


def test_the_timeline_link_leads_to_our_timeline(server: Server) -> None:
    asked = {"run": RUN, "host": "localhost", "module_name": MODULE, "memory_space": "5"}
    for timeline in ("true", "1", "false"):  # XProf treats any text as true
        parameters = {"tag": "memory_viewer", **asked, "view_memory_allocation_timeline": timeline}
        answer = server.get(f"{PREFIX}data?{urlencode(parameters)}")
        assert answer.status == 302
        target = urlsplit(answer.headers["Location"])
        # XProf's page, relative, so that a proxy's prefix is kept.
        assert (target.scheme, target.netloc, target.path) == ("", "", "./")
        page = {"tag": "memory_viewer", "run": RUN, "host": "localhost", "moduleName": MODULE}
        assert dict(parse_qsl(target.query)) == page
        place = {"tab": "memory_viewer", "run": RUN, "host": "localhost", "module": MODULE}
        assert dict(parse_qsl(target.fragment)) == {**place, "space": "5", "full": "true"}
    by_id = server.get(f"{PREFIX}data?tag=memory_viewer&run={RUN}&program_id=2&view_memory_allocation_timeline=true")
    assert dict(parse_qsl(urlsplit(by_id.headers["Location"]).query))["moduleName"] == "jit_loss(2)"


def test_a_read_only_logdir_will_do(tmp_path: Path) -> None:
    """Make the folder read-only: XProf's own Memory Viewer needs to write files next to the profile."""
    logs = tmp_path / "logs"
    shutil.copytree(DEMO / "train_step", logs)
    drop: list[str] = []
    if os.geteuid() == 0:  # root can write anywhere unless it drops that capability
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    before = {path: path.stat().st_mtime_ns for path in logs.rglob("*")}
    for path in (*before, logs):
        path.chmod(0o555)
    try:
        with serving(logs, tmp_path, drop) as server:
            assert "memory_viewer" in json.loads(server.get(f"{PREFIX}run_tools?run=cpu").body)
            assert MODULE in server.get(f"{PREFIX}module_list?run=cpu").text.split(",")
            assert data(server, run="cpu", module_name=MODULE)["moduleName"] == "jit_train_step"
            assert json.loads(server.get(f"{PREFIX}memory/api/recordings?run=cpu").body)["recordings"]
        assert {path: path.stat().st_mtime_ns for path in logs.rglob("*")} == before
    finally:
        for path in (*before, logs):
            path.chmod(0o755)


def test_our_routes_write_nothing(tmp_path: Path) -> None:
    """Check the logdir afterwards: XProf's own tools write caches, ours write nothing."""
    logs = tmp_path / "logs"
    shutil.copytree(DEMO / "train_step", logs)
    before = sorted(logs.rglob("*"))
    with serving(logs, tmp_path) as server:
        recordings = json.loads(server.get("memory/api/recordings?run=cpu").body)["recordings"]
        for route in ("memory_viewer", "rows", "usage"):
            assert server.get(f"memory/api/{route}?{urlencode({'id': recordings[0]['id']})}").status == 200
        data(server, run="cpu", module_name=MODULE)
        assert sorted(logs.rglob("*")) == before


def test_a_logdir_that_is_not_there_is_one_line() -> None:
    done = subprocess.run(
        [str(BIN / "tb-memplugin"), "xprof", "--logdir=/nowhere"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "/nowhere" in line
