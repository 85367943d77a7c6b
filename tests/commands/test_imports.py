"""The modules that commands load: a small command must not wait for what it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest
from support.servers import DEMO

from tb_memplugin.cli import COMMANDS, about

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


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_loads_no_command(argument: str) -> None:
    modules = loaded(argument)
    own = {name for name in modules if name.startswith("tb_memplugin.")}
    assert own == {f"tb_memplugin.{name}" for name in ("cli", "commands", "commands.terminal", "errors", "sizes")}
    assert not {"numpy", "google.protobuf", "re2", "asyncio", "concurrent.futures", "tempfile"} & set(modules)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_the_first_line_of_each_command(name: str) -> None:
    text = (import_module(f"tb_memplugin.commands.{name}").__doc__ or "").strip().partition("\n")[0].rstrip(".")
    assert about(name) == f"{text[0].lower()}{text[1:]}"


def test_a_command_loads_no_other_command() -> None:
    modules = loaded("hook", "--help")
    assert not {f"tb_memplugin.commands.{name}" for name in ("summary", "check", "fit", "serve")} & set(modules)


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
