"""Files and folders whose names are not UTF-8: every command and every route shows them, and finds them again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.servers import DEMO, REPOSITORY, TESTS
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.logdir import path_text

DUMP = TESTS / "data/xla_dumps/tpu_v5e"


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    top = Path(os.fsdecode(os.fsencode(tmp_path) + b"/logs\xff"))
    session = top / os.fsdecode(b"run\xfe/plugins/profile/now\xfd")
    session.mkdir(parents=True)
    shutil.copy(DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb", session / os.fsdecode(b"h\xe9.xplane.pb"))
    (session / os.fsdecode(b"bad\xe9.xplane.pb")).write_bytes(b"\xff" * 100)
    folder = top / os.fsdecode(b"snap\xff")
    folder.mkdir()
    shutil.copy(DEMO / "device_profile/memory.prof", folder / os.fsdecode(b"memory\xff.prof"))
    dump = top / os.fsdecode(b"dump\xff")
    shutil.copytree(DUMP, dump)
    for file in list(dump.iterdir()):
        name = os.fsencode(file.name)
        file.rename(dump / os.fsdecode(name.replace(b"jit_", b"jit\xff_")))
    return top


def is_text(value: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in value)


def test_names_become_text_once() -> None:
    assert path_text("/a/é.prof") == "/a/é.prof"
    assert path_text(os.fsdecode(b"/a/\xff\xc3\xa9.prof")) == "/a/\\xffé.prof"
    assert path_text("/a/\ud800.prof") == "/a/\\ud800.prof"


def test_every_command_reads_them(logdir: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> bytes:
        command = [os.fsencode(str(part)) for part in (sys.executable, "-m", "tb_memplugin.cli", *arguments)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(command, capture_output=True, env=environment)
        assert done.returncode == 0 and b"Traceback" not in done.stderr, done
        return done.stdout

    assert b"memory\\xff" in run("summary", logdir)
    ids = [recording["id"] for recording in json.loads(run("summary", logdir, "--json"))["recordings"]]
    assert (
        all(map(is_text, ids)) and any("run\\xfe" in each for each in ids) and any("snap\\xff" in each for each in ids)
    )
    of_profile = next(each for each in ids if "memory\\xff" in each)
    assert json.loads(run("explain", logdir, "--recording", of_profile, "--json"))["recording"]["id"] == of_profile
    run("summary", logdir / os.fsdecode(b"snap\xff/memory\xff.prof"))
    run("check", logdir / os.fsdecode(b"snap\xff"), "--max-peak", "99TiB", "--json")
    for name in (b"rows\xff.csv", b"rows\xff.json", b"report\xff.html"):
        run("export", logdir, "--to", tmp_path / os.fsdecode(name), "--recording", "snap")
        assert (tmp_path / os.fsdecode(name)).stat().st_size > 100


def test_the_page_finds_what_it_was_given(logdir: Path) -> None:
    client = Client(MemoryApp(Catalog(str(logdir))))

    def get(route: str) -> Any:
        response = client.get(f"/api/{route}")
        assert response.status_code == 200, (route, response.text)
        assert is_text(json.dumps(response.json, ensure_ascii=False))
        return response.json

    runs = get("runs")["runs"]
    names = [run["name"] for run in runs]
    assert {"run\\xfe/now\\xfd", "snap\\xff", "dump\\xff"} <= set(names)
    found = [listed for name in names for listed in get(f"recordings?run={quote(name)}")["recordings"]]
    assert {path_text(each.id) for each in listing_of_path(str(logdir)).recordings} == {each["id"] for each in found}
    for each in found:
        get(f"tree?by=role&id={quote(each['id'])}")
    of_session = quote("run\\xfe/now\\xfd")
    problems = get(f"recordings?run={of_session}")["problems"]
    get(f"overview?run={of_session}")
    assert any("bad\\xe9.xplane.pb" in problem["file"] for problem in problems)
