"""The page's answer about a fit that was really compiled: the same as that of the command, and as each program's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.servers import TESTS
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.cli import main
from tb_memplugin.hosts.api import MemoryApp

STEP = f"{TESTS / 'fit' / 'step.py'}:step"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture
def command(logs: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    vary = ["--vary", "batch=64:1024:64", "--vary", "remat=none,full"]
    main(["fit", STEP, "--on", "cpu:2", *vary, "--budget", "4MiB", "--to", str(logs), "--json", "--top", "all"])
    return dict(json.loads(capsys.readouterr().out))


def asked(client: Client, route: str, **query: str) -> Any:
    return json.loads(client.get(f"/api/{route}", query_string=query).data)


def test_figures_and_largest_values_are_the_same_everywhere(logs: Path, command: dict[str, Any]) -> None:
    client = Client(MemoryApp(Catalog(str(logs))))
    [step] = asked(client, "fit")["steps"]
    assert step["searched"] == "batch"
    keys = ("reserved_bytes", "peak_bytes", "fits", "rematerialized", "limit_bytes")
    printed = {one["run"]: [one[key] for key in keys] for one in command["candidates"]}
    assert {one["run"]: [one[key] for key in keys] for one in step["candidates"]} == printed
    for one in step["candidates"]:
        programs = asked(client, "recordings", run=one["run"])["recordings"]
        assert [one["reserved_bytes"], one["peak_bytes"]] in [
            [program["reserved_bytes"], program["peak_bytes"]] for program in programs
        ]
        assert sum(role["bytes"] for role in one["roles"]) == one["peak_bytes"]
    largest = {
        choice["knobs"]["remat"]: [
            None if choice[key] is None else step["candidates"][choice[key]]["value"]
            for key in ("candidate", "without_recomputation")
        ]
        for choice in step["choices"]
    }
    assert largest == {
        one["knobs"]["remat"]: [one["value"], one["value_without_recomputation"]] for one in command["largest"]
    }
