"""Candidates on the workers of a dask cluster."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fit.steps import write_code
from support.dask_cluster import SECONDS, kill_worker
from support.dask_cluster import cluster as cluster

from tb_memplugin.errors import InputError
from tb_memplugin.fit.compile_task import ScriptCall
from tb_memplugin.fit.compiling.compiler import CompileOptions, open_compiler
from tb_memplugin.fit.step.sources import collect_sources, unpack
from tb_memplugin.fit.step.step_file import FoundStep, find_step
from tb_memplugin.model.fit import Candidate

pytest.importorskip("jax")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of dask's own

CODE = """
import jax, time
from helper import width
from pathlib import Path

def step(devices, batch=8):
    with open({started!r}, "a") as file:
        file.write(".")
    while not Path({go!r}).exists():
        time.sleep(0.05)
    return jax.jit(lambda x: x @ x.T), (jax.ShapeDtypeStruct((batch, width()), "float32"),)
"""


def test_killing_a_worker_half_way_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    (tmp_path / "helper.py").write_text("def width(): return 64")
    step = write_code(tmp_path, CODE.format(started=str(started), go=str(go)))
    found = {}
    options = CompileOptions(scheduler=cluster.scheduler_address, uses_cache=False)
    with open_compiler(tmp_path / "log", find_step(step), threading.Event(), options) as compiler:
        (tmp_path / "helper.py").unlink()  # the workers have it already

        def run(batch: int) -> None:
            found[batch] = compiler(Candidate(step, "cpu:1", (("batch", batch),)))

        threads = [threading.Thread(target=run, args=(batch,)) for batch in (512, 1024, 2048)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + SECONDS
        while not (started.exists() and len(started.read_text()) >= 2) and time.monotonic() < end:
            time.sleep(0.05)
        kill_worker(cluster)
        go.touch()
        for thread in threads:
            thread.join(SECONDS)
    assert {batch: outcome.error for batch, outcome in found.items()} == {512: "", 1024: "", 2048: ""}
    assert all((outcome.reserved_bytes or 0) >= batch * batch * 4 for batch, outcome in found.items())
    assert len(list((tmp_path / "log").glob("*/*after_optimizations.hlo.pb"))) == 3


def test_modules_beside_a_step_are_sent_with_it(tmp_path: Path) -> None:
    (tmp_path / "model" / "parts").mkdir(parents=True)
    (tmp_path / "model" / "__init__.py").write_text("import other")
    (tmp_path / "model" / "parts" / "mlp.py").write_text("")
    (tmp_path / "other.py").write_text("import user_step, numpy")
    (tmp_path / "unused.py").write_text("")
    step = write_code(tmp_path, "from model.parts import mlp\nimport jax")
    sources = collect_sources(step)
    assert [name for name, _ in sources.files] == [
        *("0/model/__init__.py", "0/model/parts/mlp.py", "0/other.py", "0/user_step.py"),
    ]
    assert sources.step == "0/user_step.py:step"
    folder = unpack(sources, tmp_path / "elsewhere")
    assert (folder / "0/model/__init__.py").read_text() == "import other"
    assert unpack(sources, tmp_path / "elsewhere") == folder


def test_a_module_is_sent_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert collect_sources("mine.train:step").files == (("0/mine/train.py", b""),)
    assert collect_sources("numpy.linalg:norm").files == ()


SCRIPT = """
import json, sys
import jax, jax.numpy as jnp
from helper import width

if __name__ == "__main__":
    with open(sys.argv[1].partition("=")[2]) as file:
        rows = json.load(file)["rows"] * int(sys.argv[2])
    step, values = jax.jit(lambda x: x + 1), jnp.ones((rows, width()))
    while True:
        values = step(values)
"""


@pytest.mark.slow
def test_a_script_runs_on_the_workers_with_the_files_of_its_command_line(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "configs").mkdir()
    (tmp_path / "code" / "helper.py").write_text("def width(): return 4096")
    (tmp_path / "code" / "train.py").write_text(SCRIPT)
    (tmp_path / "configs" / "small.json").write_text('{"rows": 1024}')
    monkeypatch.chdir(tmp_path)
    script = ScriptCall(("--config=configs/small.json", "{batch}"))
    options = CompileOptions(scheduler=cluster.scheduler_address, uses_cache=False)
    step = FoundStep("code/train.py:__main__", script=script)
    with open_compiler(tmp_path / "log", step, threading.Event(), options) as compiler:
        (tmp_path / "code").rename(tmp_path / "gone")
        (tmp_path / "configs").rename(tmp_path / "gone too")
        found = compiler(Candidate(step.text, "cpu:1", (("batch", 2),)))
    assert (found.error, found.reserved_bytes) == ("", 2 * (2 * 1024) * 4096 * 4)


def test_only_files_below_the_working_folder_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").write_text("")
    (tmp_path / "work" / "train.py").write_text("")
    (tmp_path / "work" / "own.yml").write_text("a: 1")
    monkeypatch.chdir(tmp_path / "work")
    call = ScriptCall(("--config=own.yml", "../secret", f"--key={tmp_path / 'secret'}", "none.yml"))
    sources = collect_sources("train.py:__main__", call)
    assert sources.files == (("0/own.yml", b"a: 1"), ("0/train.py", b"")) and sources.working == 0


def test_no_scheduler_and_no_dask_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(scheduler: str) -> None:
        options = CompileOptions(scheduler=scheduler)
        with open_compiler(tmp_path, find_step(write_code(tmp_path, "")), threading.Event(), options):
            pass

    monkeypatch.setattr("tb_memplugin.executors.CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://"):
        with pytest.raises(InputError, match="dask scheduler"):
            connect(address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"tb-memplugin\[dask\]"):
        connect("tcp://h:1")
