"""Files whose programs have equal module names: each row, id and link opens the file that it names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest
from support.equal_names import COUNT, MODULES, program, size_of, write_programs
from support.payload_decoder import decode
from werkzeug.test import Client

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.cli import main
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.hosts.mcp.reader import LogdirReader


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("equal_names")
    write_programs(folder)
    return folder


def number_of(source: str) -> int:
    """Return the number of the program in a file."""
    name = source.rpartition("/")[2]
    return int(name.split("_")[1][:4] if name[0] in "ms" else source.split("/run_")[1].split("/")[0])


@pytest.mark.parametrize("run", ["flat", "dump"])
def test_every_row_opens_its_own_program(logdir: Path, run: str) -> None:
    client = Client(MemoryApp(Catalog(str(logdir))))

    def ask(path: str) -> dict:  # type: ignore[type-arg]
        return client.get(path).json  # type: ignore[return-value]

    rows = ask(f"/api/overview?run={run}")["rows"]
    listed = {row["id"]: row for row in ask(f"/api/recordings?run={run}")["recordings"]}
    assert sorted(row["peak_bytes"] for row in rows) == sorted(map(size_of, range(COUNT)))
    assert len({row["id"] for row in rows}) == len({row["title"] for row in rows}) == COUNT
    for row in rows:
        view, _ = decode(client.get(f"/api/memory_viewer?id={quote(row['id'])}").data)
        assert listed[row["id"]]["peak_bytes"] == row["peak_bytes"]
        assert f'"bytes": {row["peak_bytes"]},' in json.dumps(view["figures"])


def test_an_id_is_of_one_file_in_every_surface(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog, reader = Catalog(str(logdir)), LogdirReader(str(logdir))
    recordings = listing_of_path(str(logdir)).recordings
    assert len({recording.id for recording in recordings}) == len(recordings) == 3 * COUNT
    for recording in recordings[:: COUNT // 10]:
        size = size_of(number_of(recording.source))
        for found in (recording, catalog.recording(recording.id), reader.recording("", recording.id)[0]):
            assert (found.id, found.source, peak(found).bytes) == (recording.id, recording.source, size)
    one = next(recording for recording in recordings if recording.source.endswith("flat/step_0012.hlo.pb"))
    assert one.id == "flat||jit_train_step (step_0012)|HBM"
    assert main(["explain", str(logdir), "--recording", one.id, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recording"]["peak_bytes"] == size_of(12)


def test_titles_come_from_names_and_do_not_change_with_other_programs(tmp_path: Path) -> None:
    for name, number in (("b", 3), ("a", 0), ("other", 1), ("jit_train_step.c", 6)):
        (tmp_path / f"{name}.hlo.pb").write_bytes(program(number))

    def titles() -> set[str]:
        return {recording.title for recording in listing_of_path(str(tmp_path)).recordings}

    found = titles()
    assert found == {"jit_train_step (a)", "jit_train_step (b)", "jit_train_step (c)", "jit_eval_step(2)"}
    (tmp_path / "0.hlo.pb").write_bytes(program(9))
    assert titles() == {*found, "jit_train_step (0)"}


def test_equal_stems_are_told_apart_by_whole_names(tmp_path: Path) -> None:
    for suffix, number in ((".hlo.pb", 0), (".hlo_proto.pb", 3)):
        (tmp_path / f"step{suffix}").write_bytes(program(number))
    found = {recording.title for recording in listing_of_path(str(tmp_path)).recordings}
    assert found == {"jit_train_step (step.hlo.pb)", "jit_train_step (step.hlo_proto.pb)"}


def test_a_file_that_is_added_or_removed_never_changes_what_an_id_opens(tmp_path: Path) -> None:
    (tmp_path / "a.hlo.pb").write_bytes(program(0))
    catalog = Catalog(str(tmp_path))
    run = catalog.runs()[0].name
    alone = catalog.listing(run).recordings[0].id
    (tmp_path / "b.hlo.pb").write_bytes(program(3))
    both = {recording.id: recording.source for recording in catalog.listing(run).recordings}
    assert alone not in both and len(both) == 2
    with pytest.raises(InputError, match="Unknown recording"):
        catalog.recording(alone)
    (tmp_path / "a.hlo.pb").unlink()
    named = next(recording for recording in both if "(a)" in recording)
    with pytest.raises(InputError, match="Unknown recording"):
        catalog.recording(named)


def test_a_dump_names_each_of_several_modules_of_a_name_by_its_number(logdir: Path, tmp_path: Path) -> None:
    shutil.copytree(logdir / "dump", tmp_path / "dump")
    catalog = Catalog(str(tmp_path))
    first = "dump||jit_train_step (module 0)|HBM"
    assert peak(catalog.recording(first)).bytes == size_of(0)
    next((tmp_path / "dump").glob("module_0000.*")).unlink()
    with pytest.raises(InputError, match="Unknown recording"):
        catalog.recording(first)


def test_standalone_files_of_one_stem_are_separate_hosts(tmp_path: Path) -> None:
    profile = Path(__file__).parents[1] / "demo_logdir" / "device_profile" / "memory.prof"
    for suffix in ("prof", "pprof"):
        shutil.copy(profile, tmp_path / f"step.{suffix}")
    assert {recording.host for recording in listing_of_path(str(tmp_path)).recordings} == {"step.prof", "step.pprof"}


def test_runs_of_equal_names_are_named_apart(tmp_path: Path) -> None:
    """The logdir may be named as a folder in it, and a session as a folder beside it."""
    for number, folder in enumerate(("", "logs", "a/plugins/profile/s", "a/s")):
        (tmp_path / "logs" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / folder / "x.hlo_proto.pb").write_bytes(program(number))
    catalog = Catalog(str(tmp_path / "logs"))
    runs = catalog.runs()
    assert len({run.name for run in runs}) == 4
    assert next(run.name for run in runs if run.folder.endswith("plugins/profile/s")) == "a/s"
    for run in runs:
        (recording,) = catalog.listing(run.name).recordings
        assert catalog.recording(recording.id) is recording


def test_programs_are_found_by_their_modules_in_any_file(logdir: Path) -> None:
    found = Catalog(str(logdir)).programs([MODULES[1]])
    assert {program.program.module for program in found if program.program} == {MODULES[1]}
    assert len(found) == COUNT
