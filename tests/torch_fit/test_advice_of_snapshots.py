"""`advice --step`: the step of a snapshot is traced with each change, and the advice says what that saves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch")

from torch_fit.test_changed_step import FILE
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.cli import main
from tb_memplugin.hosts.api import MemoryApp

BATCH = 8192


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """Return a logdir with a snapshot of the step, as if a GPU had recorded it."""
    from tb_memplugin.torch_fit.process_group import ALONE
    from tb_memplugin.torch_fit.tracing import trace_step

    (tmp_path / "train.py").write_text(FILE)
    names: dict[str, Any] = {}
    exec(compile(FILE, str(tmp_path / "train.py"), "exec"), names)
    folder = tmp_path / "logdir" / "recorded"
    folder.mkdir(parents=True)
    trace_step(lambda: names["step"], "train.py:step", {"batch": BATCH}, "h100", ALONE).save(folder / "step.pickle")
    return folder.parent


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["advice", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def evidence(answer: dict[str, Any]) -> dict[str, str]:
    return {one["kind"]: one["evidence"] for one in answer["advice"] if one["kind"] != "fragmentation"}


def test_what_the_traced_changes_save_takes_the_place_of_the_estimates(
    logdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot, step = logdir / "recorded" / "step.pickle", f"{logdir.parent / 'train.py'}:step"
    asked = snapshot, "--step", step, "--on", "h100", "--to", logdir, "--set"
    simulated = json.loads(ask(capsys, snapshot, "--json"))
    assert {*evidence(simulated).values()} == {"simulated"}
    traced = json.loads(ask(capsys, *asked, f"batch={BATCH}", "--json"))
    assert {*evidence(traced).values()} == {"traced"}
    records = [json.loads(path.read_text()) for path in logdir.glob("*/fit.json")]
    reserved = {tuple(one["changes"]): one["reserved_bytes"] for one in records}
    for piece in traced["advice"]:
        change = {"rematerialization": "torch:checkpoint", "microbatching": "torch:accumulate"}.get(piece["kind"])
        if change:
            assert piece["saving_bytes"] == reserved[()] - reserved[(change,)]

    text = ask(capsys, *asked, f"batch={BATCH}")
    assert "Traced as it is, the step has" in text and "The estimates stay" not in text
    assert ", traced  Use two microbatches" in text

    # The traced step itself has the same figures, on the page and in the terminal.
    own = next(path.parent.name for path in logdir.glob("*/fit.json") if not json.loads(path.read_text())["changes"])
    of_run = f"{own}|snapshot|snapshot|cuda:0"
    page: Any = Client(MemoryApp(Catalog(str(logdir)))).get("/api/advice", query_string={"id": of_run}).json
    terminal = json.loads(ask(capsys, logdir, "--recording", of_run, "--json"))
    assert {*evidence(page).values()} == {*evidence(terminal).values()} == {"traced"}

    # A step that is not the snapshot's changes no estimate.
    other = ask(capsys, *asked, f"batch={BATCH // 2}")
    assert "The estimates stay, as the step is not the one of the snapshot" in other
    assert ", traced  Use two microbatches" not in other


def test_what_cannot_be_traced_is_one_line_with_a_remedy(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = str(logdir / "recorded" / "step.pickle")
    for options, message in {
        ("--on", "h100"): "add --step FILE.py:FUNCTION",
        ("--step", f"{logdir.parent / 'train.py'}:other", "--on", "h100"): "other",
        ("--step", f"{logdir.parent / 'train.py'}:step"): "--on",
        ("--to", "x"): "add --compile",
    }.items():
        assert main(["advice", snapshot, *options]) != 0
        *_, error = capsys.readouterr().err.splitlines()
        assert error.startswith("tb-memplugin: ") and message in error
