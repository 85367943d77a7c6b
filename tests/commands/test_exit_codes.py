"""Exit codes of failures: 2 with one line, since 1 means that a memory budget is exceeded."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.servers import DEMO, REPOSITORY

from tb_memplugin import cli
from tb_memplugin.commands import check, summary

MEMORY = DEMO / "device_profile/memory.prof"
COMMAND = [sys.executable, "-m", "tb_memplugin.cli"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def run(*arguments: object, shell: str = "", buffered: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**ENVIRONMENT, "PYTHONUNBUFFERED": "" if buffered else "1"}
    command = ["bash", "-c", f'"$@" {shell}', "bash", *COMMAND, *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="surrogateescape", timeout=120
    )


@pytest.mark.parametrize("error", [ZeroDivisionError(), RuntimeError("a\nb"), MemoryError(), RecursionError("deep"),
                                   AssertionError(), OSError(5, "Input/output error"), SystemExit(1),
                                   SystemExit("no\nreason"), BrokenPipeError(32, "Broken pipe")], ids=repr)  # fmt: skip
@pytest.mark.parametrize("command", [summary, check])
def test_an_unexpected_failure_is_2_and_one_line(
    error: BaseException, command: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(command, "run", fail)
    arguments = [command.__name__.rpartition(".")[2], "x"]
    assert cli.main(arguments) == 2
    printed = capfd.readouterr()
    assert printed.out == "" and printed.err.count("\n") == (0 if error.args == (1,) else 1)
    assert "Traceback" not in printed.err
    if not isinstance(error, SystemExit):
        for with_debug in (["--debug", *arguments], [*arguments, "--debug"]):
            assert cli.main(with_debug) == 2
            traceback = capfd.readouterr().err
            assert "Traceback (most recent call last)" in traceback and "in fail" in traceback
            assert traceback.splitlines()[-1].startswith("tb-memplugin: ")


def test_ctrl_c_and_signals_have_codes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, code in ((KeyboardInterrupt(), 130), (SystemExit(143), 143), (SystemExit(), 0)):

        def fail(arguments: object, error: BaseException = error) -> int:
            raise error

        monkeypatch.setattr(summary, "run", fail)
        assert cli.main(["summary", "x"]) == code


@pytest.mark.parametrize(
    ("arguments", "buffered"),
    [
        (("summary", MEMORY), True),
        (("summary", DEMO, "--json"), False),
        (("check", MEMORY, "--max-peak", "1TiB"), True),
        (("--help",), False),
        (("--version",), True),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
def test_output_that_cannot_be_written_is_2_and_one_line(arguments: tuple[object, ...], buffered: bool) -> None:
    done = run(*arguments, shell="> /dev/full", buffered=buffered)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "No space left on device" in line


def test_closed_streams_are_no_failure_of_their_own(tmp_path: Path) -> None:
    assert run("summary", MEMORY, shell=">&-").returncode == 0
    assert run("summary", tmp_path / "none", shell="2>&-").returncode == 2
    assert run("summary", tmp_path / "none", shell="2> /dev/full").returncode == 2
    done = run("explain", "-", shell="<&-")
    assert done.returncode == 2 and "Nothing to read" in done.stderr


def test_a_budget_is_exceeded_also_for_a_reader_that_has_seen_enough() -> None:
    for options in ((), ("--json",)):
        done = run("check", DEMO, "--max-peak", "1MiB", *options, shell="| true; exit ${PIPESTATUS[0]}")
        assert (done.returncode, done.stderr) == (1, "")


def test_an_export_to_a_full_disk_is_2_and_one_line(tmp_path: Path) -> None:
    for name in ("full.csv.gz", "full.html"):
        (tmp_path / name).symlink_to("/dev/full")
        done = run("export", MEMORY, "--to", tmp_path / name, "--force")
        assert done.returncode == 2 and done.stdout == ""
        [line] = done.stderr.splitlines()
        assert line.endswith(f"Cannot write the file: {tmp_path / name}: No space left on device")
        assert (tmp_path / name).is_char_device(), "a device stays one"
    limited = tmp_path / "limited"
    limited.mkdir()
    for name in ("rows.csv", "rows.parquet"):
        script = f'ulimit -f 1; exec "$@" export {DEMO} --to {limited / name}'
        done = subprocess.run(["bash", "-c", script, "bash", *COMMAND], env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done
        assert list(limited.iterdir()) == []


def test_a_signal_during_an_export_leaves_no_temporary_file(tmp_path: Path) -> None:
    code = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that both are ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from tb_memplugin import cli
from tb_memplugin.commands import export

def wait(path):
    print("writing", flush=True)
    for _ in range(600):  # a signal that comes right before a sleep is handled after it
        time.sleep(0.1)

export.listing_of = wait
sys.exit(cli.main(["export", "x", "--to", sys.argv[1]]))
"""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "rows.csv")], stdout=subprocess.PIPE, env=ENVIRONMENT
        )
        assert process.stdout is not None and process.stdout.readline() == b"writing\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".prof", ".xplane.pb", ".pickle", ".oom.txt", ".hlo.pb", ".memory.json", ""])
@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_pipes_sockets_and_devices_are_refused_at_once(kind: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"memory{suffix}"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    else:
        path.symlink_to("/dev/zero")
    began = time.process_time()
    assert cli.main(["summary", str(path)]) == 2
    assert time.process_time() - began < 10
