"""`tb-memplugin export`: the files it writes, and the requests it rejects."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from support.command_line import run
from support.servers import DEMO, TESTS

from tb_memplugin import cli
from tb_memplugin.commands.support import output
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import is_read_with

TEXTS = TESTS / "data" / "oom_texts"
TRAIN = DEMO / "train_step"
MEMORY = DEMO / "device_profile/memory.prof"
SESSION = Path("plugins/profile/cpu")


def exported(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return run("export", *arguments, stdin=stdin)


def error_line(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the one-line error of a call that is rejected before any file is read."""
    assert cli.main(["export", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    return printed.err


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TRAIN, tmp_path / "logs"))


def test_a_logdir_as_csv(tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    done = exported(TRAIN, "--to", file)
    assert (done.returncode, done.stderr) == (0, b"")
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert done.stdout.decode().startswith(f"{file}: ")
    assert done.stdout.decode().rstrip().endswith(f", {len(rows)} rows of 2 recordings")
    assert {row["recording"] for row in rows} == {
        "cpu|localhost|jit_train_step(0)|HBM",
        "cpu|localhost|jit_loss(2)|HBM",
    }
    assert list(tmp_path.iterdir()) == [file]  # no other file is left in the folder


def test_json_is_the_summary_with_rows(tmp_path: Path) -> None:
    file = tmp_path / "step.json"
    assert exported(TRAIN, "--to", file, "--recording", "jit_train_.*HBM").returncode == 0
    told = json.loads(run("summary", "--json", TRAIN).stdout)["recordings"]
    [found] = json.loads(file.read_text())["recordings"]
    rows = found.pop("rows")
    assert found == next(recording for recording in told if "jit_train_step" in recording["id"])
    assert len(rows) == found["allocations"]
    peak = found["peak_position"]
    live = [
        row["charge_bytes"]
        for row in rows
        if (row["live_before"] or row["allocated_at"] <= peak) and (row["never_freed"] or row["freed_at"] > peak)
    ]
    assert sum(live) == found["peak_bytes"]


def test_the_text_of_an_error_and_a_file(tmp_path: Path) -> None:
    text = (TEXTS / "bfc_tensorflow.txt").read_bytes()
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    assert exported("-", "--to", one, stdin=text).returncode == 0
    assert exported(TEXTS / "bfc_tensorflow.txt", "--to", other).returncode == 0
    [piped], [read] = (json.loads(file.read_text())["recordings"] for file in (one, other))
    values = [[{**row, "recording": ""} for row in found["rows"]] for found in (piped, read)]
    assert values[0] == values[1] != []


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_compressed_is_the_same_and_always_the_same(tmp_path: Path, ending: str) -> None:
    plain, packed, again = (tmp_path / name for name in (f"a.{ending}", f"b.{ending}.gz", f"c.{ending}.gz"))
    for file in (plain, packed, again):
        assert exported(MEMORY, "--to", file).returncode == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes() == again.read_bytes()


def test_parquet_holds_what_csv_does(tmp_path: Path) -> None:
    formats = pytest.importorskip("pyarrow.parquet")
    one, other = tmp_path / "rows.parquet", tmp_path / "rows.csv"
    assert exported(TRAIN, "--to", one).returncode == exported(TRAIN, "--to", other).returncode == 0
    sizes = [int(row["size_bytes"]) for row in csv.DictReader(io.StringIO(other.read_text(), newline=""))]
    assert formats.read_table(one)["size_bytes"].to_pylist() == sizes


def test_without_pyarrow_parquet_fails_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "find_spec", lambda name: None)
    said = error_line(capsys, TRAIN, "--to", tmp_path / "rows.parquet")
    assert "Parquet needs pyarrow" in said and "`pip install pyarrow`, or write .csv or .json" in said


def test_a_file_that_is_there_is_kept_without_force(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = logdir.parent / "rows.csv"
    file.write_text("mine")
    assert "The output file exists" in error_line(capsys, logdir, "--to", file)
    assert file.read_text() == "mine"
    assert exported(logdir, "--to", file, "--force").returncode == 0
    assert file.read_text().startswith("recording,row,name,")


def test_nothing_is_written_into_a_logdir(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(logdir.rglob("*"))
    link = logdir.parent / "link"
    link.symlink_to(logdir / SESSION)
    session, profile = logdir / SESSION, logdir / SESSION / "localhost.xplane.pb"
    run = logdir / "rows.csv"
    for path, file in ((logdir, run), (session, session / "rows.json"), (session, run), (profile, run)):
        assert "The logdir is never written to" in error_line(capsys, path, "--to", file)
    assert "The logdir is never written to" in error_line(capsys, logdir, "--to", link / "rows.csv", "--force")
    assert sorted(logdir.rglob("*")) == before


def test_what_is_read_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.memory.json"
    file.write_text("[]")
    assert "The logdir is never written to" in error_line(capsys, file, "--to", file, "--force")
    assert file.read_text() == "[]"


@pytest.mark.parametrize(
    ("path", "file", "inside"),
    [
        ("logs", "logs/a.csv", True),
        ("logs", "logs/deep/a.csv", True),
        ("logs", "logs2/a.csv", False),
        ("logs", "a.csv", False),
        ("logs/run/plugins/profile/1", "logs/run/a.csv", True),
        ("logs/run/plugins/profile/1/host.xplane.pb", "logs/run/plugins/a.csv", True),
        ("logs/run/plugins/profile/1/host.xplane.pb", "a.csv", False),
        ("logs/run/plugins/profile", "logs/run/a.csv", True),
        ("snapshot.pickle", "a.csv", False),  # a separate file in the same folder
        ("snapshot.pickle", "./snapshot.pickle", True),
        ("gs://bucket/logs", "gs.csv", False),
    ],
)
def test_which_files_are_read_with_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, file: str, inside: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_read_with(path, file) is inside


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--to", "rows.xlsx"), "rows.xlsx: use one of the suffixes .csv, .csv.gz, .json, .json.gz, .parquet"),
        (("--to", "csv"), "Unknown output format"),
        (("--to", "gs://bucket/rows.csv"), "Cannot write to a remote path"),
        (("--to", "folder.csv"), "The output file is a folder"),
        (("--to", "no/such/rows.csv"), "Cannot write the file: no/such/rows.csv: No such file or directory"),
        (("--to", "rows.csv", "--recording", "("), "Not a regular expression"),
        (("--to", "rows\x1b.txt"), r"rows\x1b.txt"),
    ],
)
def test_a_wrong_call_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    (tmp_path / "folder.csv").mkdir()
    monkeypatch.chdir(tmp_path)
    assert expected in error_line(capsys, TRAIN, *arguments)


@pytest.mark.parametrize(
    ("path", "recording", "expected"),
    [
        (
            str(TRAIN),
            "jit_nothing",
            b"No recordings to export: jit_nothing: `tb-memplugin summary` lists the recordings",
        ),
        ("/no/such/logdir", "", b"/no/such/logdir"),
    ],
)
def test_without_anything_to_write_there_is_no_file(tmp_path: Path, path: str, recording: str, expected: bytes) -> None:
    done = exported(path, "--to", tmp_path / "rows.csv", "--recording", recording)
    assert (done.returncode, done.stdout) == (2, b"") and expected in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("mine")
    with pytest.raises(InputError, match="No space left on device"), output.atomic_file(str(file)) as stream:
        stream.write(b"half")
        raise OSError(28, "No space left on device")
    assert file.read_text() == "mine" and list(tmp_path.iterdir()) == [file]


def test_exported_files_have_the_default_mode(tmp_path: Path) -> None:
    """Check the file mode: a temporary file would be readable by its owner only."""
    (tmp_path / "plain").touch()
    with output.atomic_file(str(tmp_path / "rows.csv")) as stream:
        stream.write(b"rows")
    plain, written = (stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("plain", "rows.csv"))
    assert written == plain


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert exported(MEMORY, "--to", tmp_path / "link.csv", "--force").returncode == 0
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "real.csv").stat().st_size
