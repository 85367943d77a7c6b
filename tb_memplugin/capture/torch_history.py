"""PyTorch memory snapshots of a training loop, saved at its end and when memory runs out.

    from tb_memplugin.capture import torch_memory
    with torch_memory("/tmp/xprof") as memory:
        for number, batch in enumerate(batches):
            with memory.step(number):
                train_step(batch)

The files have the format of torch.cuda.memory._dump_snapshot, which PyTorch's own viewer opens too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tb_memplugin.capture.frameworks import torch
from tb_memplugin.capture.guard import SlowFailures, annotated, quietly, warn
from tb_memplugin.capture.new_files import LogDir, create_file, join, logdir_text, process_name, replace_file

FOLDER = "torch_memory"
# Size of the event buffer: enough for some hundred steps of a large model, in a few hundred megabytes.
MAX_ENTRIES = 1_000_000
RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")  # torchrun, Open MPI, Slurm, MPICH
NO_GPU = "PyTorch found no GPU, and it records GPU memory only"
NOT_RECORDED = "PyTorch's memory is not recorded, and training continues"
NOT_SAVED = "the memory snapshot could not be saved, and training continues"


@contextmanager
def torch_memory(logdir: LogDir, *, max_entries: int = MAX_ENTRIES, stacks: str = "all") -> Iterator[TorchMemory]:
    """Record every allocation and free, with stacks, and save a snapshot at the end of the block.

    The snapshot is in `<logdir>/torch_memory/<start time>/`, one file per process, such as `rank0_<host>_<process
    id>.pickle`; `logdir` is local, or a URL that fsspec supports. When the device runs out of memory, another snapshot
    is saved as `rank0_<host>_<process id>.oom.pickle`, even if the error is caught.

    `stacks="all"` includes C++ frames, which operator names and gradients are derived from, since the backward pass has
    no Python frames. Resolving their names at the end may take minutes; `stacks="python"` leaves them out. According
    to PyTorch, recording costs 2 us per allocation. ValueError for other values of `stacks`.

    Training is never interrupted: without a GPU, or where PyTorch or a file fails, the logger `tb_memplugin.capture`
    has one line for each kind of error. Exceptions of the block pass as they are.
    """
    if stacks not in ("python", "all"):
        raise ValueError(f"stacks is {stacks!r}: give 'python' or 'all'")
    recorder = TorchMemory(logdir)
    if not _has_gpu():
        yield recorder
        return
    history: Any = torch.cuda.memory
    with quietly(NOT_RECORDED):
        history._record_memory_history(enabled="all", context="all", stacks=stacks, max_entries=max_entries)
        recorder.save_on_oom()
    try:
        yield recorder
    finally:
        recorder.save()
        recorder.done = True
        with quietly("PyTorch's recording of memory could not be ended"):
            history._record_memory_history(enabled=None)


class TorchMemory:
    """A recording in progress; `files` are the paths of the saved snapshots."""

    def __init__(self, logdir: LogDir) -> None:
        self._logdir = logdir
        self._began = time.strftime("%Y_%m_%d_%H_%M_%S")
        self._saved: dict[tuple[int, str], str] = {}  # paths by process, since a fork inherits those of its parent
        self._failures = SlowFailures()
        self.done = False

    @property
    def files(self) -> list[str]:
        return [path for (process, _), path in self._saved.items() if process == os.getpid()]

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Mark an iteration of the loop, as an annotation in the snapshot (PyTorch 2.5 or later)."""
        with annotated(
            "steps are not marked in the snapshot", lambda: torch.profiler.record_function(f"step {number}")
        ):
            yield

    def save(self, suffix: str = "") -> str | None:
        """Save a snapshot of the events so far, in place of the last one, and return the path of the file.

        Returns None where that fails, such as without a GPU: an exception would end the training, or hide the
        allocator's error.
        """
        with quietly(NOT_SAVED):
            if _has_gpu() and not self._failures.is_pausing:
                with self._failures.attempt():
                    return self._save(suffix)
        return None

    def _save(self, suffix: str) -> str:
        memory: Any = torch.cuda.memory
        key = os.getpid(), suffix
        if (path := self._saved.get(key)) is not None:
            replace_file(path, memory._dump_snapshot)
            return path
        folder = join(logdir_text(self._logdir), FOLDER, self._began)
        # Ranks are known only now: process groups are often initialized after recording has started.
        path = create_file(join(folder, f"{_rank_name()}{process_name()}{suffix}.pickle"), memory._dump_snapshot)
        self._saved[key] = path
        return path

    def save_on_oom(self) -> None:
        """Save when memory runs out, before anything is freed. PyTorch offers no way to remove the observer."""
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is None:
            return

        def save(device: int, requested: int, device_total: int, device_free: int) -> None:
            if not self.done:
                self.save(".oom")

        with quietly("no snapshot will be saved at the moment when memory runs out"):
            attach(save)


def _has_gpu() -> bool:
    with quietly(NOT_RECORDED):
        if torch.cuda.is_available():
            return True
        warn(NOT_RECORDED, NO_GPU)
    return False


def _rank_name() -> str:
    """Return `rank3_`: of the process group, or else from the variable of the program that started the process."""
    with quietly("the rank of this process is unknown"):
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return f"rank{int(torch.distributed.get_rank())}_"
    given = [os.environ.get(name, "") for name in RANK_VARIABLES]
    return f"rank{next((rank for rank in given if rank.isascii() and rank.isdigit()), '0')}_"
