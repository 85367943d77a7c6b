"""The profiles of benchmarks, of any size, each made once in a process of its own."""

from __future__ import annotations

import gzip
import multiprocessing
import shutil
from functools import partial
from pathlib import Path

from benchmarks import generate as generate_program
from benchmarks import generate_events, generate_samples, generate_snapshot

DEMO_RUN = Path(__file__).parent.parent / "demo_logdir/train_step"


def events(events: int, of_allocators: int, logdir: Path) -> None:
    space, _ = generate_events.generate(events, of_allocators)
    _put(logdir, "plugins/profile/cpu/localhost.xplane.pb", space.SerializeToString())


def program(buffers: int, logdir: Path) -> None:
    generate_program.write(logdir, buffers)


def snapshot(events: int, logdir: Path) -> None:
    logdir.mkdir(parents=True, exist_ok=True)
    generate_snapshot.generate(logdir / "snapshot.pickle", events)


def samples(count: int, logdir: Path) -> None:
    _put(logdir, "memory.prof", gzip.compress(generate_samples.generate(count).SerializeToString(), 6))


def demo_step(logdir: Path) -> None:
    shutil.copytree(DEMO_RUN, logdir, dirs_exist_ok=True)


def _put(logdir: Path, name: str, content: bytes) -> None:
    (logdir / name).parent.mkdir(parents=True, exist_ok=True)
    (logdir / name).write_bytes(content)


def made(write: partial[None], folder: Path) -> Path:
    """Return the logdir below a folder that `write` makes, unless it was made before.

    It is made in a new process: some profiles take gigabytes to make, which would slow what is measured afterwards.
    """
    logdir = folder / "-".join([write.func.__name__, *map(str, write.args)])
    if not logdir.exists():
        unfinished = logdir.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        process = multiprocessing.get_context("spawn").Process(target=write, args=(unfinished,))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"{logdir.name} was not made: its process ended with {process.exitcode}")
        unfinished.rename(logdir)
    return logdir
