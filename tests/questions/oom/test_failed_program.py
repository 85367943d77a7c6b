"""The program that an out-of-memory error names: found by name and size in the dumps of the logdir."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.questions.oom.failure import failed_program

REFUSED, FITS = "v5e_out_of_memory", "v5e_train_step"
PAGE = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
TEXT = (DEMO / REFUSED / "compile.oom.txt").read_text()


def app_of(folder: Path, *runs: str) -> Client:
    for run in runs:
        shutil.copytree(DEMO / run, folder / run)
    return Client(MemoryApp(Catalog(str(folder))))


def runs_of_programs(app: Client, text: str) -> list[str]:
    pasted = json.loads(app.post("/api/paste", data=text.encode(), headers=PAGE).data)
    identifier = pasted["recordings"][0]["id"]
    answer: dict[str, Any] = json.loads(app.get("/api/failed_program", query_string={"id": identifier}).data)
    assert all(program["title"] == "jit_train_step" for program in answer["programs"])
    return [program["run"] for program in answer["programs"]]


def test_of_programs_of_one_name_the_one_that_needs_as_much_as_the_error_says(tmp_path: Path) -> None:
    assert runs_of_programs(app_of(tmp_path, REFUSED, FITS), TEXT) == [REFUSED]


def test_without_one_that_needs_as_much_those_of_the_name(tmp_path: Path) -> None:
    assert runs_of_programs(app_of(tmp_path, FITS), TEXT) == [FITS]


def test_without_a_program_of_the_name_there_is_none(tmp_path: Path) -> None:
    assert runs_of_programs(app_of(tmp_path, REFUSED), TEXT.replace("jit_train_step", "jit_other")) == []
    assert runs_of_programs(app_of(tmp_path / "empty"), TEXT) == []


def test_a_report_finds_the_program_that_it_contains() -> None:
    recordings = listing_of_path(str(DEMO / REFUSED)).recordings
    error = next(recording for recording in recordings if recording.out_of_memory is not None)
    source = report_source(recordings, recordings)
    assert [program["memory"] for program in failed_program(error, source.recordings)["programs"]] == ["HBM"]
    program = next(recording for recording in recordings if recording.program is not None)
    assert failed_program(program, source.recordings)["programs"] == []
