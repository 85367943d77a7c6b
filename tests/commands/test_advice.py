"""`advice --compile`: the program of a dump is compiled again, and the advice says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

from fit.steps import DUMPED_STEP, compile_step, dumped, write_code
from support.command_line import run_for_text
from werkzeug.test import Client

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.readers.fit_record import read_outcome


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Return a folder with the dump of a step for the CPU that donates nothing."""
    folder = tmp_path / "log" / "dump"
    assert not compile_step(write_code(tmp_path, DUMPED_STEP.format(folder=str(folder)))).outcome.error
    return folder


def donation(*arguments: object) -> dict[str, object]:
    done = run_for_text("advice", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)["advice"]
    return next(piece for piece in found if piece["kind"] == "donation")


def test_what_a_compile_shows_takes_the_place_of_the_estimate(dump: Path) -> None:
    assert donation(dump)["evidence"] == "simulated"
    compiled = donation(dump, "--compile", "--to", dump.parent)
    assert (compiled["evidence"], compiled["saving_of"]) == ("compiled", "reserved")
    records = [read_outcome(file.read_bytes(), str(file)) for file in dump.parent.glob("*/fit.json")]
    now, donated = sorted(records, key=lambda one: len(one.candidate.changes))
    assert donated.candidate.changes == ("donate:state",) and compiled["before_bytes"] == now.reserved_bytes
    assert compiled["after_bytes"] == donated.reserved_bytes

    # The runs beside the dump say the same about it later, to every surface.
    text = run_for_text("advice", dump, "--compile").stdout
    size = f"{(now.reserved_bytes or 0) / 2**20:.2f} MiB"
    assert f"Compiled again as it is, the program reserves {size}; in the dump, {size}." in text
    assert "Donate state  " in text and ", compiled  Donate state" in text


def test_what_cannot_be_compiled_again_is_one_line_with_a_remedy(dump: Path, tmp_path: Path) -> None:
    (program,) = dump.glob("*after_optimizations.hlo.pb")
    shutil.copy(program, tmp_path / program.name)
    errors = {
        (tmp_path / program.name, "--compile"): "no program before optimization",
        (dump, "--to", tmp_path): "add --compile",
        (dump, "--compile", "--no-cache", "--timeout", "0.01"): "give it longer with --timeout",
        (dump, "--compile", "--no-cache", "--memory", "1KiB"): "allow --memory SIZE",
    }
    for arguments, text in errors.items():
        done = run_for_text("advice", *arguments)
        assert done.returncode != 0 and text in done.stderr, (text, done.stderr)

    Path(dumped(dump).rpartition(":")[0]).write_bytes(b"\xff" * 99)
    done = run_for_text("advice", dump, "--compile")
    assert done.returncode != 0 and "cannot be read" in done.stderr


def test_every_surface_shows_what_was_compiled_into_a_logdir_beside_the_dump(dump: Path) -> None:
    assert run_for_text("advice", dump, "--compile", "--to", dump.parent).returncode == 0
    (own,) = [one for one in listing_of_path(str(dump.parent)).recordings if one.run == "dump" and one.is_main_memory]
    page: Any = Client(MemoryApp(Catalog(str(dump.parent)))).get("/api/advice", query_string={"id": own.id}).json
    answers = [page]
    for command in ("advice", "explain"):
        done = run_for_text(command, dump.parent, "--recording", own.id, "--json")
        answers.append(json.loads(done.stdout))
    for answer in answers:
        assert [one["evidence"] for one in answer["advice"] if one["kind"] == "donation"] == ["compiled"]
