"""Compiling candidates in processes: what comes back, and what does not stay."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("jax")

from fit.steps import compile_step, write_step

from tb_memplugin.fit.compile_task import Limits
from tb_memplugin.fit.sweep import write_program, write_record
from tb_memplugin.logdir import find_runs


def test_a_run_contains_the_program_its_target_and_the_record_alone(tmp_path: Path) -> None:
    found = compile_step(write_step(tmp_path), batch=16)
    assert found.outcome.error == "" and found.outcome.fits
    assert found.outcome.reserved_bytes is not None and found.outcome.reserved_bytes >= 16 * 1024 * 4
    write_program(found.files, tmp_path / "log" / "one")
    write_record(found.outcome, tmp_path / "log" / "one")
    names = sorted(path.name for path in (tmp_path / "log" / "one").iterdir())
    assert names[0] == "fit.json" and names[1].endswith("after_optimizations.hlo.pb") and len(names) == 2
    assert [run.name for run in find_runs(str(tmp_path / "log"))] == ["one"]


def pids(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


ENDINGS = {
    "os._exit(3)": "ended",
    "os.kill(os.getpid(), 11)": "SIGSEGV",
    "os.kill(os.getpid(), 9)": "Killed by the system",
    "time.sleep(1000)": "--timeout",
    "os.fork() or time.sleep(1000); time.sleep(1000)": "--timeout",
    "os.fork() or (os.setsid(), time.sleep(1000)); time.sleep(1000)": "--timeout",
    "os.fork() or time.sleep(1000); os._exit(0)": "ended",
    "os.fork() or (os.setsid(), os.fork() and os._exit(0), time.sleep(1000)); os._exit(0)": "ended",
    "held = b'x' * (600 << 20); time.sleep(1000)": "--memory",
    "os.fork() or (b'x' * (600 << 20), time.sleep(1000)); time.sleep(1000)": "--memory",
    "[print('x' * 1000000) for _ in range(100)]; os._exit(5)": "exit status 5",
}


@pytest.mark.parametrize("code", ENDINGS)
def test_a_process_that_ends_badly_is_one_line_and_leaves_nothing(code: str, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    begin = f"import os, sys, time\nopen({str(file)!r}, 'a').write(f'{{os.getpid()}} ')\n"
    begin += f"os.register_at_fork(after_in_child=lambda: open({str(file)!r}, 'a').write(f'{{os.getpid()}} '))\n"
    times_out = "timeout" in ENDINGS[code]
    limits = Limits(seconds=2 if times_out else 30, bytes=2 << 30 if times_out else 512 << 20)
    found = compile_step(write_step(tmp_path, begin + code), limits)
    assert ENDINGS[code] in found.outcome.error and "\n" not in found.outcome.error
    assert found.files == {}
    end = time.monotonic() + 60  # to free much memory takes time
    while any(map(is_running, pids(file))) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in pids(file) if is_running(pid)]


@pytest.mark.parametrize(
    "code", ["import os; os.chdir('/')", "import os; os.fork() or os._exit(0)", "print('x' * 5000000)"]
)
def test_what_a_step_does_to_its_process_does_not_matter(code: str, tmp_path: Path) -> None:
    assert compile_step(write_step(tmp_path, code)).outcome.error == ""


def test_a_deleted_folder_is_written_again_by_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    found = compile_step(write_step(tmp_path, f"import shutil; shutil.rmtree({str(folder)!r})"))
    assert found.outcome.fits and found.files
