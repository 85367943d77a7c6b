"""The plain `xprof` command with our hook, in a separate environment that shares this environment's packages."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.hook_environment import command
from support.servers import DEMO, free_port, running

from tb_memplugin.hosts import hook

RUNS = "data/plugin/profile/memory/api/runs"


def files(environment: Path) -> set[str]:
    return {str(path.relative_to(environment.parent)) for path in environment.parent.rglob("*") if path.is_file()}


def test_install_status_remove(environment: Path) -> None:
    before = files(environment)
    assert "Not installed" in command(environment, "status")
    assert hook.OFF_SWITCH in command(environment, "install")
    assert {Path(name).name for name in files(environment) - before} == {f"{hook.NAME}.pth", f"{hook.NAME}.start"}
    assert f"{hook.NAME}.pth" in command(environment, "status")
    assert "Removed" in command(environment, "remove")
    assert files(environment) == before
    assert "nothing to remove" in command(environment, "remove")


@pytest.mark.parametrize(("installed", "switch", "ours"), [(False, "", False), (True, "", True), (True, "0", False)])
def test_plain_xprof(environment: Path, tmp_path: Path, installed: bool, switch: str, ours: bool) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(DEMO / "train_step", logs)
    command(environment, "install" if installed else "remove")
    port, grpc = free_port(), free_port()
    xprof = [str(environment / "xprof"), f"--logdir={logs}", f"--port={port}", f"--grpc_port={grpc}"]
    try:
        with running(xprof, port, tmp_path, environment={hook.OFF_SWITCH: switch}) as server:
            assert ("xprof.js" in server.get("").text) is ours
            answer = server.get(RUNS)
            assert (answer.status == 200 and answer.headers["Content-Type"] == "application/json") is ours
            if ours:
                assert [run["name"] for run in json.loads(answer.body)["runs"]] == ["cpu"]
    finally:
        command(environment, "remove")


def test_other_programs_import_nothing_of_ours(environment: Path, tmp_path: Path) -> None:
    command(environment, "install")
    try:
        code = "import sys; print([name for name in sys.modules if name.startswith('tb_memplugin')])"
        other = tmp_path / "other"
        other.write_text(code)
        named = tmp_path / "xprof"
        named.write_text(code)
        python = str(environment / "python")
        for program, expected in (
            ([python, "-c", code], "[]"),
            ([python, str(other), "xprof"], "[]"),
            ([python, str(named)], "['tb_memplugin', 'tb_memplugin.hosts', 'tb_memplugin.hosts.hook']"),
        ):
            done = subprocess.run(program, capture_output=True, text=True, timeout=60)
            assert (done.stdout.strip(), done.stderr) == (expected, "")
    finally:
        command(environment, "remove")


def test_a_failure_of_ours_leaves_xprof_running(capsys: pytest.CaptureFixture[str]) -> None:
    from types import ModuleType

    hook._install_in(ModuleType("xprof.server"))
    assert "XProf runs without it" in capsys.readouterr().err
