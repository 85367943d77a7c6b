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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from tb_memplugin.capture.allocator_events import memory_stats
from tb_memplugin.capture.frameworks import jax
from tb_memplugin.capture.new_files import LogDir, create_file
from tb_memplugin.capture.profile_run import is_out_of_memory, note_failure, save_quietly
from tb_memplugin.capture.wire import fields, message, number
from tb_memplugin.model.kinds import NOTES_PREFIX

# Field numbers of pprof's Profile message.
STRING_TABLE, TIME_NANOS, COMMENT = 6, 9, 13


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
    return save_profile(logdir, step)


def save_profile(logdir: LogDir, step: int | None, reason: str = "") -> str | None:
    """Save a snapshot as `snapshot` does, with the reason for it."""
    return save_quietly(logdir, jax, step, lambda path: _save(path, step, reason))


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
        if is_out_of_memory(error):
            save_after(logdir, error)
        raise


def save_after(logdir: LogDir, error: BaseException) -> None:
    """Save a snapshot after an out-of-memory error, and add a note about it to the error. Never raises."""
    note_failure(logdir, jax, error, lambda path: _save(path, None, "out of memory"))


def annotate(
    profile: bytes, time_ns: int, step: int | None, devices: dict[str, dict[str, int]], reason: str = ""
) -> bytes:
    """Return the profile with its time, and with the step and the devices' counters in a comment.

    Protocol buffers and gzip streams may be concatenated, so the additions are appended.
    """
    note = NOTES_PREFIX + json.dumps({"step": step, "devices": devices, **({"reason": reason} if reason else {})})
    added = message(STRING_TABLE, note.encode())
    strings = sum(field == STRING_TABLE for field, _ in fields(memoryview(gzip.decompress(profile))))
    added += number(COMMENT, strings)  # the number of the text that was added
    added += number(TIME_NANOS, time_ns)
    return profile + gzip.compress(added)


def _save(path: str, step: int | None, reason: str) -> str:
    profile = jax.profiler.device_memory_profile()
    step = None if step is None else int(step)  # JAX's and NumPy's integers have no JSON
    # Devices are named as in the profile's labels.
    devices = {str(device): stats for device in jax.local_devices() if (stats := memory_stats(device))}
    return create_file(f"{path}.prof", annotate(profile, max(time.time_ns(), 0), step, devices, reason))
