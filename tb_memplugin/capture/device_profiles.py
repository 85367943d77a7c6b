"""Device profiles that know when they were taken: the time, the step, and what each device's allocator said then.

    from tb_memplugin.capture import on_oom, snapshot_every
    saw = snapshot_every(100, "/tmp/xprof")
    with on_oom("/tmp/xprof"):
        for step, batch in enumerate(batches):
            state = train_step(state, batch)
            saw(step)

Files are those of jax.profiler.save_device_memory_profile, which pprof reads too: what is added is in their comments.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import jax

from tb_memplugin.capture.live_arrays import memory_stats
from tb_memplugin.capture.wire import fields, message, number

FOLDER = "device_profiles"
NOTE = "tb_memplugin "  # what the comment begins with that holds step and memory_stats() as JSON
# Of pprof's Profile: the field numbers of what is added.
STRING_TABLE, TIME_NANOS, COMMENT = 6, 9, 13
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "Out of memory")


def snapshot(logdir: str, *, step: int | None = None) -> str:
    """Saves what is on this process's devices now, and returns the path of the file.

    Into `<logdir>/device_profiles/<when the process took its first>/`, a run of its own beside the traces: local, or
    wherever fsspec has a driver for. Arrays and executables are in it, each with the stack that made it; what a
    compiled program needs while it runs is not. Costs 12 ms where 10,000 arrays come of few lines, 150 ms where 3,000
    come of as many lines, on a CPU that other work shares.
    """
    taken = time.time_ns()
    folder = _folder(logdir)
    number = f"{step:08d}" if step is not None else f"{taken // 10**6}"
    path = os.path.join(folder, f"memory_{number}.prof")
    _write(path, annotated(jax.profiler.device_memory_profile(), taken, step, _stats()))
    return path


def snapshot_every(n_steps: int, logdir: str) -> Callable[[int], str | None]:
    """A function to call after each step with its number: it saves a snapshot after every `n_steps`-th of them.

    The first call saves one too, so that there is something to compare with. ValueError where n_steps is below 1.
    """
    if n_steps < 1:
        raise ValueError(f"n_steps is {n_steps}: give 1 for a snapshot after every step, or more")
    calls = 0

    def saw(step: int) -> str | None:
        nonlocal calls
        due = calls % n_steps == 0
        calls += 1
        return snapshot(logdir, step=step) if due else None

    return saw


@contextmanager
def on_oom(logdir: str) -> Iterator[None]:
    """Around a training loop, or before it as a decorator: when it runs out of memory, what is on the devices is saved.

    With it goes the text of the error, `<snapshot>.oom.txt`. The error then goes on its way; notes on it say where the
    files are, or why there are none.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or any(sign in str(error) for sign in OUT_OF_MEMORY):
            try:
                path = snapshot(logdir)
                _write(f"{path.removesuffix('.prof')}.oom.txt", str(error).encode("utf-8", "backslashreplace"))
                error.add_note(f"What was on the devices is in {path}; tb-memplugin serve --logdir {logdir} shows it.")
            except Exception as failure:  # never in place of the error itself
                error.add_note(f"What was on the devices could not be saved: {failure}")
        raise


def annotated(profile: bytes, time_ns: int, step: int | None, devices: dict[str, dict[str, int]]) -> bytes:
    """The profile with its time, and a comment with the rest.

    Protocol buffers may be written piece by piece, and so may gzip: what is new is appended.
    """
    note = NOTE + json.dumps({"step": step, "devices": devices})
    added = message(STRING_TABLE, note.encode())
    added += number(COMMENT, _strings(gzip.decompress(profile)))
    added += number(TIME_NANOS, time_ns)
    return profile + gzip.compress(added)


def _strings(profile: bytes) -> int:
    """How many entries its string table has."""
    return sum(field == STRING_TABLE for field, _ in fields(memoryview(profile)))


def _stats() -> dict[str, dict[str, int]]:
    """By the names that the profile's labels have."""
    return {str(device): stats for device in jax.local_devices() if (stats := memory_stats(device))}


@cache
def _folder(logdir: str) -> str:
    """One for each process: its devices are named as those of the others."""
    process = f"_process_{jax.process_index()}" if jax.process_count() > 1 else ""
    return os.path.join(logdir, FOLDER, time.strftime("%Y_%m_%d_%H_%M_%S") + process)


def _write(path: str, content: bytes) -> None:
    """Whole or not at all: a server may be looking."""
    if "://" in path:
        import fsspec

        with fsspec.open(path, "wb") as stream:
            stream.write(content)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = f"{path}.{os.getpid()}.part"
    with open(beside, "wb") as stream:
        stream.write(content)
    os.replace(beside, path)
