"""Annotated chunks of an allocator's dump, joined to the buffers of the programs in the logdir."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.cli import main
from tb_memplugin.model.kinds import RecordingKind, Role
from tb_memplugin.model.recording import Recording

DATA = Path(__file__).parent / "data"
TEXT = DATA / "oom_texts" / "bfc_annotated.txt"


def rows(recording: Recording) -> list[tuple[str, str, int]]:
    table = recording.allocations
    return [(table.name[row], table.shape[row], int(table.role[row])) for row in range(len(table))]


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """Return a logdir with the text in one folder and the dump of its program in another."""
    shutil.copytree(DATA / "xla_dumps" / "gpu_h100", tmp_path / "dump")
    (tmp_path / "errors").mkdir()
    shutil.copy(TEXT, tmp_path / "errors" / "step.oom.txt")
    return tmp_path


def test_a_chunk_is_named_after_its_program_and_allocation() -> None:
    (recording,) = listing_of_path(str(TEXT)).recordings
    assert rows(recording) == [
        ("jit_step: live_out allocation 2", "", Role.OUTPUT),
        ("jit_step: temp allocation 23", "", Role.TEMPORARY),
        ("chunk", "", Role.UNKNOWN),
    ]
    assert recording.program_chunks is not None
    assert recording.program_chunks.allocation.tolist() == [2, 23, -1]


def test_the_program_in_the_logdir_names_the_buffer(logdir: Path) -> None:
    """Allocation 2 of the program has 1 MiB, as its chunk."""
    of_path = next(r for r in listing_of_path(str(logdir)).recordings if r.kind is RecordingKind.OUT_OF_MEMORY)
    name, shape, role = rows(of_path)[0]
    assert name.startswith("jit_step: ") and shape == "f32[512,512]{1,0}" and role == Role.OUTPUT
    catalog = Catalog(str(logdir))
    (listed,) = catalog.listing("errors").recordings
    assert rows(listed) == rows(of_path)
    assert catalog.recording(listed.id) is listed


def test_temporaries_are_named_after_the_largest(logdir: Path) -> None:
    (listed,) = Catalog(str(logdir)).listing("errors").recordings
    name, shape, _ = rows(listed)[1]
    assert name.startswith("jit_step: ") and "allocation" not in name and shape


def test_an_allocation_of_another_size_is_of_another_program(logdir: Path) -> None:
    text = TEXT.read_text().replace("allocation_index=23", "allocation_index=8")  # of 4 bytes
    (logdir / "errors" / "step.oom.txt").write_text(text)
    (listed,) = Catalog(str(logdir)).listing("errors").recordings
    assert rows(listed)[1][0] == "jit_step: temp allocation 8"


def test_a_program_of_the_same_name_that_is_larger_is_another_one(logdir: Path) -> None:
    text = TEXT.read_text().replace("of size 1048576 next 1", "of size 524288 next 1")
    (logdir / "errors" / "step.oom.txt").write_text(text)
    (listed,) = Catalog(str(logdir)).listing("errors").recordings
    assert rows(listed)[0][0] == "jit_step: live_out allocation 2"


def test_commands_show_the_buffer(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(logdir), "--recording", "OOM", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert any("f32[512,512]" in group["shape"] for group in answer["groups"])


@pytest.mark.parametrize(
    "annotation",
    ["xla.execute{", "xla.execute{executable=}", "xla.buffer{allocation_index=-5}", "xla.buffer{}" * 300, "x" * 5000],
)
def test_damaged_annotations_are_none(annotation: str, tmp_path: Path) -> None:
    text = TEXT.read_text().replace("xla.execute{executable=jit_step, device=0}", annotation)
    (tmp_path / "a.txt").write_text(text)
    (recording,) = listing_of_path(str(tmp_path / "a.txt")).recordings
    assert len(recording.allocations) == 3
    assert {row[0] for row in rows(recording)} == {"chunk"}
