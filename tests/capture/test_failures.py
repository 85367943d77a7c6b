"""Failures of disks, stores, devices and the profiler inside a training loop: each is one line of the log."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pytest
from support.servers import REPOSITORY

from tb_memplugin.capture import guard
from tb_memplugin.catalog.listing import listing_of_path

jax = pytest.importorskip("jax")
jnp = jax.numpy

from tb_memplugin import capture  # noqa: E402  # it imports jax
from tb_memplugin.capture import allocator_events, live_arrays  # noqa: E402
from tb_memplugin.capture.allocator_events import AllocatorEventWriter  # noqa: E402

OUT_OF_MEMORY = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes."


class OddError(Exception):
    """An error of a library, whose text fails too."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


ERRORS = [
    NotImplementedError(),
    AttributeError("'Device' object has no attribute 'memory_stats'"),
    ValueError("first line\nsecond line"),
    RuntimeError("Array has been deleted."),
    jax.errors.JaxRuntimeError("UNIMPLEMENTED: no"),
    ImportError("Install s3fs to access S3"),
    MemoryError(),
    RecursionError(),
    OddError(),
]
names = [type(error).__name__ for error in ERRORS]
each_error = pytest.mark.parametrize("error", ERRORS, ids=names)


def fail(error: BaseException) -> Callable[..., Any]:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    return failing


@contextmanager
def full_disk() -> Iterator[None]:
    """Let every write of more than some bytes fail, as the kernel does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def with_snapshot(logdir: Any) -> None:
    assert capture.snapshot(logdir, step=1) is None


def with_snapshots(logdir: Any) -> None:
    after_step = capture.snapshot_every(2, logdir)
    assert [after_step(step) for step in range(4)] == [None] * 4


def with_on_oom(logdir: Any) -> None:
    error = jax.errors.JaxRuntimeError(OUT_OF_MEMORY)
    with pytest.raises(jax.errors.JaxRuntimeError) as raised, capture.on_oom(logdir):
        raise error
    assert raised.value is error
    assert any("could not be saved" in note for note in error.__notes__)


each_call = pytest.mark.parametrize("call", [with_snapshot, with_snapshots, with_on_oom])


def one_line(caplog: pytest.LogCaptureFixture) -> str:
    [line] = caplog.messages
    assert line.startswith("tb_memplugin: ") and "\n" not in line
    return line


@each_call
def test_a_full_disk_is_one_line_and_no_file(
    call: Callable[[Any], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with full_disk():
        call(tmp_path)
        call(tmp_path)
    assert "File too large" in one_line(caplog)
    assert files(tmp_path) == []
    assert capture.snapshot(tmp_path) is not None, "with room again, it is saved again"


def in_place_of_the_logdir(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file"


def in_place_of_its_folder(folder: Path) -> Path:
    (folder / "device_profiles").touch()
    return folder


@each_call
@pytest.mark.parametrize("block", [in_place_of_the_logdir, in_place_of_its_folder])
def test_a_folder_that_cannot_be_written_is_one_line(
    call: Callable[[Any], None], block: Callable[[Path], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logdir = block(tmp_path)
    call(logdir)
    call(logdir)
    assert "could not be saved, and training continues" in one_line(caplog)


@each_call
@pytest.mark.parametrize(
    "logdir",
    ["://bucket/run", "nosuchscheme://bucket/run", "s3nothere://x", "http://127.0.0.1:9/x", "a\0b", "", b"", None, 5,
     Path("s3://bucket/run")],
    ids=repr,
)  # fmt: skip
def test_a_logdir_that_is_none_is_one_line(
    call: Callable[[Any], None],
    logdir: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    call(logdir)
    call(logdir)
    one_line(caplog)
    assert list(tmp_path.iterdir()) == []


@each_call
@each_error
def test_a_store_may_raise_anything(
    call: Callable[[Any], None], error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fsspec.core, "url_to_fs", fail(error))
    call("memory://failing")
    assert type(error).__name__ in one_line(caplog)


@each_call
@each_error
def test_a_device_profile_that_jax_cannot_make_is_one_line(
    call: Callable[[Any], None],
    error: Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(jax.profiler, "device_memory_profile", fail(error))
    call(tmp_path)
    one_line(caplog)
    if call is with_on_oom:  # the error's own words are saved nevertheless
        [text] = tmp_path.rglob("*.oom.txt")
        assert text.read_text() == OUT_OF_MEMORY
    else:
        assert files(tmp_path) == []


class FailingDevice:
    platform, id = "odd", 0

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def memory_stats(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [*ERRORS, "text", 5, {"bytes_in_use": None}, {"bytes_in_use": object()}],
    ids=lambda answer: type(answer).__name__,
)
def test_without_counters_of_the_device_a_snapshot_is_saved(
    answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept = jnp.ones(11)
    monkeypatch.setattr(jax, "local_devices", lambda: [FailingDevice(answer)])
    for step in range(3):
        assert capture.snapshot(tmp_path, step=step) is not None
    assert len(caplog.messages) == (0 if isinstance(answer, dict) else 1)
    assert len(listing_of_path(str(tmp_path)).recordings) == 3
    del kept


@pytest.mark.parametrize("logdir", [str, Path, os.fsencode, lambda path: f"file://{path}"])
def test_a_logdir_may_be_text_a_path_bytes_or_a_url(logdir: Callable[[Path], Any], tmp_path: Path) -> None:
    assert capture.snapshot(logdir(tmp_path), step=7) is not None
    assert files(tmp_path) == ["memory_00000007.prof"]


def test_steps_may_be_numbers_of_jax_and_need_not_be_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    after_step: Any = capture.snapshot_every(1, tmp_path)
    assert after_step(jnp.int32(5)) is not None
    assert after_step("five") is None
    assert "ValueError" in one_line(caplog)


def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ns in (2_000_000_000, 1_000_000_000, 1_000_000_000, -5):
        monkeypatch.setattr(time, "time_ns", lambda ns=ns: ns)
        capture.snapshot(tmp_path)
    assert files(tmp_path) == [f"memory_{ms}.prof" for ms in (2000, 2001, 2002, 2003)]


def test_exceptions_of_the_block_pass_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Frozen(MemoryError):
        def add_note(self, note: str) -> None:
            raise TypeError("no notes")

    for error in (KeyboardInterrupt(), SystemExit(3), OddError(), StopIteration(), GeneratorExit(), Frozen()):
        with pytest.raises(type(error)) as raised, capture.on_oom(tmp_path / "file"):
            raise error
        assert raised.value is error and error.__cause__ is None
        with pytest.raises(type(error)) as raised, capture.track(interval=None) as tracker, tracker.step(1):
            raise error
        assert raised.value is error and error.__cause__ is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_ctrl_c_and_the_end_of_the_process_are_no_failures(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax.profiler, "device_memory_profile", fail(error))
    with pytest.raises(type(error)):
        capture.snapshot(tmp_path)


def test_slow_failures_are_not_repeated_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that answers after a minute must not take a minute of every step."""
    now, tried = [1000.0], []

    def wait(*_: Any) -> None:
        tried.append(now[0])
        now[0] += 60
        raise TimeoutError("no answer")

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(jax.profiler, "device_memory_profile", wait)
    after_step = capture.snapshot_every(1, tmp_path)
    for step in range(100):
        after_step(step)
        now[0] += 61
    assert len(tried) == 2  # 60 s in 6,000


@contextmanager
def profiled(folder: Path) -> Iterator[None]:
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(str(folder), profiler_options=options):
        yield


TRACKED: dict[str, tuple[Any, str]] = {
    "live_arrays": (jax, "live_arrays"),
    "local_devices": (jax, "local_devices"),
    "TraceAnnotation": (jax.profiler, "TraceAnnotation"),
    "StepTraceAnnotation": (jax.profiler, "StepTraceAnnotation"),
    "on_device_size": (live_arrays, "creating_line"),
    "sharding": (live_arrays, "sharding_text"),
    "thread": (threading.Thread, "start"),
    "bytes_limit": (live_arrays, "bytes_limit"),
}


@pytest.mark.parametrize("error", ERRORS[:4], ids=names[:4])
@pytest.mark.parametrize("failing", TRACKED)
def test_tracking_never_ends_the_training(
    failing: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    owner, name = TRACKED[failing]
    steps = []
    with profiled(tmp_path):
        monkeypatch.setattr(owner, name, fail(error))
        with capture.track(interval=0.001) as tracker:
            for number in range(3):
                with tracker.step(number):
                    kept = jnp.ones((number + 3, 7))
                    tracker.mark()
                    steps.append(kept.shape)
        monkeypatch.undo()
    assert len(steps) == 3
    if failing == "sharding":
        assert caplog.messages == []  # no array here has several devices
    else:
        one_line(caplog)


@each_error
def test_tracking_without_counters_records_the_arrays(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    device = jax.devices()[0]
    monkeypatch.setattr(allocator_events, "memory_stats", allocator_events.memory_stats)
    monkeypatch.setattr(jax, "local_devices", lambda: [FailingDevice(error)])
    with profiled(tmp_path), capture.track(interval=None) as tracker:
        for number in range(3):
            with tracker.step(number):
                kept = jnp.ones((5, 5))
    one_line(caplog)
    recordings = listing_of_path(str(tmp_path)).recordings
    assert f"cpu:{device.id} live arrays" in [recording.memory for recording in recordings]
    del kept


def test_an_array_that_cannot_be_examined_is_left_out_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = []

    def line(array: Any) -> str:
        if array.shape == (3, 1, 4):
            tried.append(array.shape)
            raise NotImplementedError("no traceback")
        return "train.py:1"

    monkeypatch.setattr(live_arrays, "creating_line", line)
    odd = jnp.ones((3, 1, 4))
    with profiled(tmp_path), capture.track(interval=None) as tracker:
        for _ in range(5):
            tracker.mark()
        other = jnp.ones((2, 7, 1))
        tracker.mark()
    one_line(caplog)
    assert len(tried) == 1
    # Arrays that other tests left may be in further memories.
    tables = [r.allocations for r in listing_of_path(str(tmp_path)).recordings if r.memory.endswith("live arrays")]
    shapes = {rows.shape[i] for rows in tables for i in range(len(rows.size))}
    assert str(other.shape) in shapes and str(odd.shape) not in shapes


def test_a_tracker_that_failed_does_no_more_work_until_the_next_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, live = [], jax.live_arrays

    def listing() -> Any:
        listed.append(1)
        return live()

    monkeypatch.setattr(jax, "live_arrays", listing)
    tracker = live_arrays.Tracker()
    with profiled(tmp_path / "first"):
        with monkeypatch.context() as patch:
            patch.setattr(AllocatorEventWriter, "write_changes", fail(ValueError("no")))
            tracker.mark()
        for _ in range(5):
            tracker.mark()
        assert len(listed) == 1
    tracker.mark()
    with profiled(tmp_path / "second"):
        tracker.mark()
        assert len(listed) == 2


def test_a_fork_does_not_wait_for_a_thread_of_its_parent() -> None:
    code = """
        import os, sys, warnings
        from tb_memplugin.capture.live_arrays import Tracker
        warnings.simplefilter("ignore")
        tracker = Tracker()
        tracker._lock.acquire()  # as the watcher's thread does while it examines
        if (process := os.fork()) == 0:
            tracker.mark()
            os._exit(7)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.run(command, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, timeout=60).returncode == 7


@pytest.mark.parametrize("interval", [-1, float("nan")])
def test_a_wrong_interval_is_refused_when_tracking_begins(interval: float) -> None:
    with pytest.raises(ValueError, match="interval is"), capture.track(interval=interval):
        pass


def test_warnings_are_bounded_and_a_broken_log_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        guard.warn(f"failure {number}", ValueError("x" * 10_000))
    assert len(caplog.messages) == guard.MAX_WARNINGS
    assert max(map(len, caplog.messages)) < 1000
    guard._warned.clear()
    monkeypatch.setattr(guard.logger, "warning", fail(ValueError("handler")))
    assert capture.snapshot("") is None


def test_warnings_as_errors_do_not_end_the_training_and_standard_error_has_one_line(tmp_path: Path) -> None:
    code = """
        import sys
        from tb_memplugin import capture
        after_step = capture.snapshot_every(1, sys.argv[1])
        for step in range(5):
            after_step(step)
        print("trained")
    """
    (tmp_path / "file").touch()
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), str(tmp_path / "file")]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    [line] = done.stderr.splitlines()
    assert "NotADirectoryError" in line


@pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0, reason="needs to mount"
)
def test_a_file_system_without_room_keeps_no_part_of_a_file(tmp_path: Path) -> None:
    code = """
        import os, sys
        from pathlib import Path
        from tb_memplugin import capture
        folder = Path(sys.argv[1])
        filler = folder / "filler"
        descriptor = os.open(filler, os.O_CREAT | os.O_WRONLY)
        try:
            while os.write(descriptor, bytes(512)):
                pass
        except OSError:
            os.close(descriptor)
        import jax.numpy as jnp
        kept = [jnp.ones(n) for n in range(1, 50)]
        print(capture.snapshot(folder, step=1), *[path for path in folder.rglob("*.*")])
        filler.unlink()
        print(Path(capture.snapshot(folder, step=2)).name)
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    (tmp_path / "disk").mkdir()
    shell = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}/disk && exec {sys.executable} {script} {tmp_path}/disk"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", shell], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == ["None", "memory_00000002.prof"], done
    [line] = done.stderr.splitlines()
    assert "No space left on device" in line
