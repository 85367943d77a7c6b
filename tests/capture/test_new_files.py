"""Files of several processes in one logdir, and of remote logdirs: none is overwritten, none is left in part."""

from __future__ import annotations

import errno
import logging
import os
import platform
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from support.servers import REPOSITORY

from tb_memplugin.capture.new_files import create_file, create_folder, logdir_text, process_name, replace_file
from tb_memplugin.catalog.listing import listing_of_path

jax = pytest.importorskip("jax")

from tb_memplugin import capture  # noqa: E402  # it imports jax

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY), "JAX_PLATFORMS": "cpu"}
PROCESSES = 3


@pytest.fixture(autouse=True)
def memory() -> Iterator[MemoryFileSystem]:
    """Return a file system without the files of other tests, and leave none."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def program() -> Any:
    return jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((64, 64), "float32")).compile()


SCRIPT = """
    import sys, time, jax, jax.numpy as jnp
    time.strftime = lambda form: "2026_01_01_00_00_00"
    from tb_memplugin import capture
    program = jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((64, 64), "float32")).compile()
    print("ready", flush=True)
    sys.stdin.readline()
    after_step = capture.snapshot_every(1, sys.argv[1])
    print(*[after_step(step) for step in range(5)], *[capture.compiled(program, sys.argv[1]) for _ in range(5)])
"""


def together(code: str, *arguments: object) -> list[str]:
    """Return what several processes print that wait for each other before they begin."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        for _ in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return [process.communicate("go\n", timeout=120)[0] for process in processes]


def test_processes_that_start_in_one_second_write_runs_of_their_own(tmp_path: Path) -> None:
    paths = [path for output in together(SCRIPT, tmp_path) for path in output.split()]
    assert len(set(paths)) == PROCESSES * 10
    assert sorted(str(path) for path in tmp_path.rglob("*") if path.is_file()) == sorted(paths)
    recordings = listing_of_path(str(tmp_path)).recordings
    runs = {recording.run for recording in recordings if recording.kind == "device_profile"}
    assert len(runs) == PROCESSES and len(recordings) == PROCESSES * 10
    for run in runs:  # each is one series
        steps = [r.capture_info.step for r in recordings if r.run == run and r.capture_info is not None]
        assert sorted(step for step in steps if step is not None) == [0, 1, 2, 3, 4]


def test_a_forked_process_has_a_folder_of_its_own(tmp_path: Path) -> None:
    code = """
        import os, sys, time, warnings
        time.strftime = lambda form: "2026_01_01_00_00_00"
        warnings.simplefilter("ignore")
        from tb_memplugin.capture import profile_run
        before = profile_run.run_of(sys.argv[1]).path(1)
        if (process := os.fork()) == 0:
            print(profile_run.run_of(sys.argv[1]).path(1), flush=True)
            os._exit(0)
        os.waitpid(process, 0)
        print(before)
        print(profile_run.run_of(sys.argv[1]).path(1))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=True)
    of_child, before, after = done.stdout.split()
    assert of_child != before == after


def test_a_process_names_its_host_and_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "gpu-7.cluster/é" + "x" * 300)
    assert process_name() == f"gpu-7_{os.getpid()}"
    monkeypatch.setattr(platform, "node", lambda: "a b/ü" + "x" * 300)
    assert len(process_name()) < 80 and process_name().startswith("a-b--xxx")


def test_a_second_snapshot_of_a_step_is_another_file(tmp_path: Path) -> None:
    first, second = (capture.snapshot(tmp_path, step=3) for _ in range(2))
    assert first is not None and second is not None
    assert (Path(first).name, Path(second).name) == ("memory_00000003.prof", "memory_00000003_2.prof")


@pytest.mark.parametrize("links", [True, False], ids=["with hard links", "without hard links"])
def test_a_file_that_exists_is_never_overwritten(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:

        def refuse(*_: Any) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
    paths = [create_file(str(tmp_path / "a.oom.txt"), text) for text in (b"1", b"2", b"3")]
    assert [Path(path).name for path in paths] == ["a.oom.txt", "a_2.oom.txt", "a_3.oom.txt"]
    assert [Path(path).read_bytes() for path in paths] == [b"1", b"2", b"3"]
    replace_file(paths[0], b"4")
    assert Path(paths[0]).read_bytes() == b"4"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_that_appears_while_another_is_written_stays(tmp_path: Path) -> None:
    def write(temporary: str) -> None:
        Path(temporary).write_bytes(b"ours")
        (tmp_path / "a.prof").write_bytes(b"theirs")

    path = create_file(str(tmp_path / "a.prof"), write)
    assert Path(path).name == "a_2.prof" and (tmp_path / "a.prof").read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("scheme", ["", "file://", "memory://"])
def test_a_write_that_fails_leaves_nothing(
    scheme: str, tmp_path: Path, memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr(os, "rename", fail)
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fail)
    with pytest.raises(OSError, match="No space left on device") as raised:
        capture.compiled(program(), f"{scheme}{tmp_path}/logs")
    assert raised.value.errno == errno.ENOSPC and f"{tmp_path}/logs" in str(raised.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [] == memory.find("/")
    assert list(tmp_path.rglob("profile/*")) == []


class Server(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store like SFTP's: files appear as they are written, unless they are committed at their end."""

    protocol = "server"
    pipe_file = fsspec.AbstractFileSystem.pipe_file
    has_room = True
    commits = True

    def _open(self, path: str, mode: str = "rb", autocommit: bool = True, **_: Any) -> Any:
        if mode == "rb":
            return super()._open(path, mode)
        file = HalfFile(self, path)
        if autocommit or not self.commits:
            file.commit()
        return file


class HalfFile(MemoryFile):  # type: ignore[misc]
    def write(self, content: bytes) -> int:
        if Server.has_room:
            return int(super().write(content))
        super().write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("commits", [True, False])
def test_a_server_that_fills_up_keeps_no_half_file(
    commits: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fsspec.register_implementation("server", Server, clobber=True)
    monkeypatch.setattr(Server, "commits", commits)
    first = capture.snapshot("server://logs", step=1)
    monkeypatch.setattr(Server, "has_room", False)
    assert first is not None and capture.snapshot("server://logs", step=2) is None
    assert list(MemoryFileSystem.store) == [first]
    assert "No space left on device" in caplog.text
    system, _ = fsspec.core.url_to_fs("server://logs")
    assert list(system.transaction.files) == []  # other code may begin a transaction


@pytest.mark.parametrize("scheme", ["memory://logs", "file://{}/logs", "local://{}/logs"])
def test_all_of_capture_writes_to_a_remote_logdir(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: MemoryFileSystem
) -> None:
    monkeypatch.chdir(tmp_path)
    logdir = scheme.format(tmp_path)
    lowered = jax.jit(lambda x: x * 3).lower(jax.ShapeDtypeStruct((64, 64), "float32"))
    written = [
        capture.compiled(program(), logdir),
        capture.compiled(program(), logdir),
        capture.snapshot(logdir, step=1),
        capture.snapshot(f"{logdir}/", step=1),
    ]
    with pytest.raises(MemoryError), capture.on_oom(logdir):
        raise MemoryError("out of memory")
    capture.compile(lowered, dump_to=f"{logdir}/dump")
    assert len(set(written)) == 4
    assert all(isinstance(path, str) and path.startswith(logdir.partition("//")[0]) for path in written)
    system, top = fsspec.core.url_to_fs(logdir)
    found = system.find(top)
    assert not [name for name in found if name.endswith(".part")]
    assert sum(name.endswith(".prof") for name in found) == 3
    assert [name for name in found if name.endswith(".oom.txt")]
    if scheme.startswith("memory"):
        assert list(tmp_path.iterdir()) == []  # no folder named after the URL
    kinds = {recording.kind for recording in listing_of_path(logdir).recordings}
    assert kinds == {"program", "device_profile"}
    assert any("/dump/" in name and "after_optimizations" in name for name in found)


def test_a_logdir_is_text_with_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert logdir_text("~/logs") == "/home/me/logs" == logdir_text(Path("~/logs"))
    assert logdir_text("gs://bucket/~/logs") == "gs://bucket/~/logs"
    for mistake in ("", "s3:/bucket", "://bucket"):
        with pytest.raises(ValueError):
            logdir_text(mistake)


def test_a_local_folder_is_created_once(tmp_path: Path) -> None:
    names = [Path(create_folder(str(tmp_path / "runs"), "now")).name for _ in range(3)]
    assert names == ["now", "now_2", "now_3"]


def test_the_log_of_a_store_is_silent_while_it_is_written_to(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Check the line of a store without credentials: gcsfs logs tracebacks of 40 lines too."""
    log = logging.getLogger("fsspec.memory")

    def fail(*_: Any, **__: Any) -> None:
        log.error("request out of retries")
        raise ConnectionError("no credentials")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fail)
    assert capture.snapshot("memory://logs") is None
    [line] = caplog.messages
    assert "no credentials" in line
    log.error("afterwards")
    assert caplog.messages[-1] == "afterwards"
