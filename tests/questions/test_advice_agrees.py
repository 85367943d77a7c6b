"""Advice is the same on every surface: the page, explain, advice, both as JSON, MCP, reports, and Overview's list."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.fits import candidate, write_program
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.fit_records import records_of_path
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.cli import main
from tb_memplugin.fit.sweep import run_name, write_record
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.mcp.reader import LogdirReader
from tb_memplugin.hosts.mcp.tools import BY_NAME
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import endpoints
from tb_memplugin.questions.asking.inputs import Call
from tb_memplugin.questions.asking.source import FitOutcomes
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.questions.recording.advice import AdviceListJson, fits_with_text, saving_line

KEYS = (
    "title", "saving_bytes", "saving_at_most_bytes", "saving_of", "before_bytes", "after_bytes", "fits", "evidence",
    "effort", "cost",
)  # fmt: skip
RUNS = ["train_step", "scan_remat", "leak", "v5e_train_step", "v5e_out_of_memory", "v5e_mended", "h100_train_step"]
Rows = list[tuple[Any, ...]]


def rows_of(answer: Any) -> Rows:
    return [tuple(piece[key] for key in KEYS) for piece in answer["advice"]]


def check(logdir: Path, recording: Recording, run: Callable[..., str]) -> AdviceListJson:
    """Compare all surfaces, and return what the page gets."""
    chosen = ("--recording", recording.id)
    page: Any = Client(MemoryApp(Catalog(str(logdir)))).get("/api/advice", query_string={"id": recording.id}).json
    reader = LogdirReader(str(logdir))
    every = listing_of_path(str(logdir)).recordings
    source = report_source(
        [one for one in every if one.id == recording.id], every, FitOutcomes(records_of_path(str(logdir)).outcomes)
    )
    answers = {
        "advice --json": json.loads(run("advice", str(logdir), *chosen, "--json", "--top=all")),
        "explain --json": json.loads(run("explain", str(logdir), *chosen, "--json", "--top=all")),
        "MCP's advice": BY_NAME["advice"].answer(reader, "", recording.id, 100),
        "MCP's explain": BY_NAME["explain"].answer(reader, "", recording.id, None, 100),
        "report": endpoints()["advice"].answer(Call({"id": recording.id}, source)),
    }
    for surface, answer in answers.items():
        assert rows_of(answer) == rows_of(page), surface
        assert answer["fits_with"] == page["fits_with"], surface
    for command in ("advice", "explain"):
        text = run(command, str(logdir), *chosen)
        wanted = [f"  {saving_line(piece)}  {piece['title']}" for piece in page["advice"][:5]]
        assert [line for line in text.splitlines() if line in wanted] == wanted, command
        assert "≈" not in text
        assert page["fits_with"] is None or fits_with_text(page) in text
    return page  # type: ignore[no-any-return]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def output(*arguments: str) -> str:
        assert main([*arguments]) == 0
        return capsys.readouterr().out

    return output


@pytest.mark.parametrize("name", RUNS)
def test_the_demo(name: str, run: Callable[..., str]) -> None:
    for recording in listing_of_path(str(DEMO / name)).recordings:
        if not recording.kind.is_failure and recording.memory != "Sflag":
            page = check(DEMO / name, recording, run)
            saved = [piece["saving_bytes"] for piece in page["advice"] if piece["cost"] == "none"]
            assert saved == sorted(saved, reverse=True)


def test_what_fit_compiled_is_on_every_surface(tmp_path: Path, run: Callable[..., str]) -> None:
    own = write_program(tmp_path, candidate(batch=8), "v5e_train_step")
    recording = next(r for r in listing_of_path(str(tmp_path)).recordings if r.is_main_memory)
    size, folder = own.reserved_bytes or 0, tmp_path / own.run
    simulated = check(tmp_path, recording, run)
    assert {piece["evidence"] for piece in simulated["advice"]} == {"simulated"}
    edit = "donate:params,opt_state"
    for saved in (1 << 30, -(1 << 30)):
        changed = replace(own.candidate, changes=(edit,))
        outcome = replace(own, candidate=changed, reserved_bytes=size - saved, run=run_name(changed))
        write_record(outcome, tmp_path)
        found = check(tmp_path, recording, run)
        donations = [piece for piece in found["advice"] if piece["kind"] == "donation"]
        assert [(piece["evidence"], piece["saving_bytes"]) for piece in donations] == (
            [("compiled", saved)] if saved > 0 else []
        )
        # A run's folder gives the same rows as its logdir.
        alone = json.loads(run("advice", str(folder), "--recording", "HBM", "--json", "--top=all"))
        assert rows_of(alone) == rows_of(found)
