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
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

FOLDER = "torch_memory"
# Size of the event buffer: enough for some hundred steps of a large model, in a few hundred megabytes.
MAX_ENTRIES = 1_000_000
NO_GPU = "PyTorch found no GPU, and it records GPU memory only"


@contextmanager
def torch_memory(logdir: str, *, max_entries: int = MAX_ENTRIES, stacks: str = "all") -> Iterator[TorchMemory]:
    """Record every allocation and free, with stacks, and save a snapshot at the end of the block.

    The snapshot is in `<logdir>/torch_memory/<start time>/`, one file per process, such as `rank0.pickle`. When the
    device runs out of memory, another snapshot is saved as `rank0.oom.pickle`, even if the error is caught.

    `stacks="all"` includes C++ frames, which operator names and gradients are derived from, since the backward pass has
    no Python frames. Resolving their names at the end may take minutes; `stacks="python"` leaves them out. According
    to PyTorch, recording costs 2 us per allocation. ValueError for other values of `stacks`.

    Training is never interrupted: without a GPU, or where a file cannot be written, a RuntimeWarning is issued instead.
    """
    if stacks not in ("python", "all"):
        raise ValueError(f"stacks is {stacks!r}: give 'python' or 'all'")
    recorder = TorchMemory(os.path.join(logdir, FOLDER, time.strftime("%Y_%m_%d_%H_%M_%S")))
    if not torch.cuda.is_available():
        warnings.warn(f"{NO_GPU}; nothing will be saved", RuntimeWarning, stacklevel=3)
        yield recorder
        return
    history: Any = torch.cuda.memory
    history._record_memory_history(enabled="all", context="all", stacks=stacks, max_entries=max_entries)
    recorder.save_on_oom()
    try:
        yield recorder
    finally:
        recorder.save_if_possible()
        recorder.done = True
        history._record_memory_history(enabled=None)


class TorchMemory:
    """A recording in progress; `files` are the paths of the saved snapshots."""

    def __init__(self, folder: str) -> None:
        rank = torch.distributed.get_rank() if torch.distributed.is_available() and _is_distributed() else 0
        self._path = os.path.join(folder, f"rank{rank}")
        self.files: list[str] = []
        self.done = False

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Mark an iteration of the loop, as an annotation in the snapshot (PyTorch 2.5 or later)."""
        with torch.profiler.record_function(f"step {number}"):
            yield

    def save(self, suffix: str = "") -> str:
        """Save a snapshot of the events so far, atomically, and return the path of the file.

        RuntimeError without a GPU, OSError where the file cannot be written.
        """
        if not torch.cuda.is_available():
            raise RuntimeError(NO_GPU)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        path = f"{self._path}{suffix}.pickle"
        temporary = f"{path}.{os.getpid()}.part"
        memory: Any = torch.cuda.memory
        memory._dump_snapshot(temporary)
        os.replace(temporary, path)
        if path not in self.files:
            self.files.append(path)
        return path

    def save_if_possible(self, suffix: str = "") -> None:
        """Save, or warn on failure: an exception here would end the training or hide the allocator's error."""
        try:
            self.save(suffix)
        except Exception as error:
            warnings.warn(f"The memory snapshot could not be saved: {error}", RuntimeWarning, stacklevel=2)

    def save_on_oom(self) -> None:
        """Save when memory runs out, before anything is freed. PyTorch offers no way to remove the observer."""
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is None:
            return

        def save(device: int, requested: int, device_total: int, device_free: int) -> None:
            if not self.done:
                self.save_if_possible(".oom")

        attach(save)


def _is_distributed() -> bool:
    return bool(torch.distributed.is_initialized())
