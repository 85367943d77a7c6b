"""The modules that commands load: a small command must not wait for what it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest
from support.servers import DEMO

from tb_memplugin.cli import COMMANDS

TRAIN = DEMO / "train_step"

# Runs a command, then prints the modules that are loaded.
REPORT = """
import contextlib, io, json, sys
from tb_memplugin import cli
with contextlib.redirect_stdout(io.StringIO()):
    try:
        cli.main(sys.argv[1:])
    except SystemExit:
        pass
print(json.dumps(sorted(sys.modules)))
"""


def loaded(*arguments: str) -> list[str]:
    command = [sys.executable, "-c", REPORT, *arguments]
    answer: list[str] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return answer


def rooms(modules: list[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("tb_memplugin.")}


CALLS = [
    ["--help"],
    ["--version"],
    ["unknown"],
    ["summary", "--unknown", "--json"],
    ["explain", "--top", "0", "PATH"],
    ["fit", "FILE.py:step", "--budget", "70G"],
    *([name, "--help"] for name in COMMANDS),
]


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_help_and_wrong_calls_load_nothing_that_reads(call: list[str]) -> None:
    modules = loaded(*call)
    assert rooms(modules) <= {"cli", "commands", "errors", "model", "questions", "sizes"}
    assert not {f"tb_memplugin.commands.{name}" for name in (*COMMANDS, "output")} & set(modules)
    assert not {"numpy", "google.protobuf", "re2", "asyncio", "concurrent.futures", "tempfile"} & set(modules)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_file(name: str) -> None:
    assert callable(import_module(f"tb_memplugin.commands.{name}").run)


def test_a_check_of_recordings_loads_neither_compiling_nor_the_fleet() -> None:
    found = loaded("check", str(TRAIN), "--max-peak", "1TiB")
    assert "numpy" in found
    assert not {"fit", "fleet", "hosts"} & rooms(found)


def test_a_summary_loads_only_what_it_needs() -> None:
    """numpy is half of the time of a small summary. Each of these would add more than 20 ms."""
    found = loaded("summary", str(TRAIN))
    modules = set(found)
    assert {"numpy", "tb_memplugin.readers.hlo"} <= modules
    unneeded = {"re2", "werkzeug", "waitress", "fsspec", "numpy.ma", "google.protobuf", "tb_memplugin.readers.oom_text"}
    assert not unneeded & modules
    assert not {"hosts", "fit", "capture", "source_files"} & rooms(found)
    readers = {name.split(".")[2] for name in modules if name.startswith("tb_memplugin.readers.")}
    assert readers == {"common", "hlo", "xplane"}
    assert not {name for name in modules if name.startswith("tb_memplugin.questions.kinds")}
