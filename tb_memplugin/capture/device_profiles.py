"""JAX device profiles with the time, the training step, and the memory counters of each device.

    from tb_memplugin.capture import on_oom, snapshot_every
    after_step = snapshot_every(100, "/tmp/xprof")
    with on_oom("/tmp/xprof"):
        for step, batch in enumerate(batches):
            state = train_step(state, batch)
            after_step(step)

The files have the format of jax.profiler.save_device_memory_profile, and pprof opens them: the additions are comments.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count

import jax

from tb_memplugin.capture.array_info import memory_stats
from tb_memplugin.capture.guard import Quietly, SlowFailures, describe, text_of, warn
from tb_memplugin.capture.new_files import LogDir, create_file, create_folder, join, logdir_text, process_name
from tb_memplugin.capture.wire import fields, message, number

FOLDER = "device_profiles"
NOTE_PREFIX = "tb_memplugin "  # of the comment with the step and memory_stats() as JSON
# Field numbers of pprof's Profile message.
STRING_TABLE, TIME_NANOS, COMMENT = 6, 9, 13
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "Out of memory")
FAILED = "the device profile could not be saved, and training continues"


def snapshot(logdir: LogDir, *, step: int | None = None) -> str | None:
    """Save a device profile of this process's devices, and return the path of the file; None where that fails.

    Training is never interrupted: the reason of a failure is logged, once for each kind of error, by the logger
    `tb_memplugin.capture`. A script that must have the file checks the result.

    The file is in `<logdir>/device_profiles/<time of the first snapshot>_<host>_<process id>/`, a run beside the
    traces; `logdir` is local, or a URL that fsspec supports. No file is ever overwritten. The profile contains arrays
    and executables, each with the stack that created it, but no temporaries of compiled programs. Cost: 12 ms for
    10,000 arrays created by a few lines, 150 ms for 3,000 arrays created by as many lines, on a shared CPU. After an
    attempt that failed and took more than a second, such as for a store that does not answer, there is no other one
    for 100 times as long.
    """
    with Quietly(FAILED):
        run = _run(logdir)
        if not run.failures.is_pausing:
            with run.failures.attempt():
                return _save(run.path(step), step)
    return None


def snapshot_every(n_steps: int, logdir: LogDir) -> Callable[[int], str | None]:
    """Return a function to call with each step's number after the step; it saves a snapshot every `n_steps` steps.

    It returns the path of the file, or None where no snapshot is due or none could be saved; like `snapshot`, it never
    raises. The first call also saves one, as a baseline. ValueError where n_steps is below 1.
    """
    if n_steps < 1:
        raise ValueError(f"n_steps is {n_steps}: give 1 for a snapshot after every step, or a larger number")
    calls = count()

    def after_step(step: int) -> str | None:
        return snapshot(logdir, step=step) if next(calls) % n_steps == 0 else None

    return after_step


@contextmanager
def on_oom(logdir: LogDir) -> Iterator[None]:
    """Save a snapshot when the block, or the decorated function, runs out of memory.

    The text of the error is saved beside it as `<snapshot>.oom.txt`. The error is raised again with a note that names
    the file, or the reason why there is none. Other exceptions pass as they are.
    """
    try:
        yield
    except Exception as error:
        if _is_out_of_memory(error):
            note = _save_with_text(logdir, error)
            with suppress(Exception):  # of an error whose class has notes of its own
                error.add_note(note)
        raise


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or any(text in text_of(error) for text in OUT_OF_MEMORY)


def _save_with_text(logdir: LogDir, error: Exception) -> str:
    """Save a snapshot, and the error's text beside it. Return a sentence about the file. Never raises."""
    try:
        path = _run(logdir).path(None)
        try:
            path = _save(path, None)
        finally:  # the compiler's or the allocator's own words are of use without a profile too
            text = text_of(error) or describe(error)
            create_file(f"{path.removesuffix('.prof')}.oom.txt", text.encode("utf-8", "backslashreplace"))
        return f"Device memory was saved to {path}. To view it, run: tb-memplugin serve --logdir {logdir_text(logdir)}"
    except Exception as failure:  # must not hide the original error
        warn(FAILED, failure)
        return f"Device memory could not be saved: {describe(failure)}"


def annotate(profile: bytes, time_ns: int, step: int | None, devices: dict[str, dict[str, int]]) -> bytes:
    """Return the profile with its time, and with the step and the devices' counters in a comment.

    Protocol buffers and gzip streams may be concatenated, so the additions are appended.
    """
    note = NOTE_PREFIX + json.dumps({"step": step, "devices": devices})
    added = message(STRING_TABLE, note.encode())
    added += number(COMMENT, _string_count(gzip.decompress(profile)))
    added += number(TIME_NANOS, time_ns)
    return profile + gzip.compress(added)


def _string_count(profile: bytes) -> int:
    return sum(field == STRING_TABLE for field, _ in fields(memoryview(profile)))


def _stats() -> dict[str, dict[str, int]]:
    """Return memory counters by device, named as in the profile's labels."""
    return {str(device): stats for device in jax.local_devices() if (stats := memory_stats(device))}


def _save(path: str, step: int | None) -> str:
    profile = jax.profiler.device_memory_profile()
    step = None if step is None else int(step)  # JAX's and NumPy's integers have no JSON
    return create_file(path, annotate(profile, max(time.time_ns(), 0), step, _stats()))


@dataclass
class ProfileRun:
    """The folder of this process in a logdir: each process needs one, since they use the same device names."""

    folder: str
    failures: SlowFailures = field(default_factory=SlowFailures)
    last_ms: int = 0

    def path(self, step: int | None) -> str:
        """Return the path of a new file, whose number rises with the step, or with the time."""
        if step is None:
            self.last_ms = max(time.time_ns() // 10**6, self.last_ms + 1)  # also where the clock is set back
        return join(self.folder, f"memory_{int(step):08d}.prof" if step is not None else f"memory_{self.last_ms}.prof")


# By process too: a fork has the memory of its parent.
_runs: dict[tuple[int, str], ProfileRun] = {}


def _run(logdir: LogDir) -> ProfileRun:
    text = logdir_text(logdir)
    key = os.getpid(), text
    if key not in _runs:
        index = f"_process_{jax.process_index()}" if jax.process_count() > 1 else ""
        name = f"{time.strftime('%Y_%m_%d_%H_%M_%S')}{index}_{process_name()}"
        _runs.setdefault(key, ProfileRun(create_folder(join(text, FOLDER), name)))
    return _runs[key]
