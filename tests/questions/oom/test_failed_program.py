"""The program that an out-of-memory error names: found by name and size in the dumps of the logdir."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.servers import DEMO
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.questions.oom.failed_program import failed_program_in_logdir
from tb_memplugin.readers.oom_text import read_oom_text

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
    answer = failed_program_in_logdir(error, source.recordings, source.runs)
    assert [program["memory"] for program in answer["programs"]] == ["HBM"]
    assert answer["fits_with"] is not None and answer["fits_with"].startswith("Fits with: Use four microbatches of 64")
    program = next(recording for recording in recordings if recording.program is not None)
    assert failed_program_in_logdir(program, source.recordings, source.runs)["programs"] == []


@pytest.mark.parametrize("text", [
    "RESOURCE_EXHAUSTED: Error loading program 'jit_train_step': Attempting to reserve 30.00G at the bottom of memory. "
    "That was not possible. There are 2.00G free",
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 30.00GiB with allocator TPU_0_bfc on device 0. "
    "[executable_name='jit_train_step']",
])  # fmt: skip
def test_the_program_of_an_error_at_run_time_is_found_too(text: str) -> None:
    [error] = read_oom_text(text.encode())
    answer = explain(error, others=listing_of_path(str(DEMO / REFUSED)).recordings)
    assert answer["failed_program"]["fits_with"] is not None
    assert "Fits with: Use four microbatches of 64" in "\n".join(lines(answer))
