"""Memory snapshots of PyTorch, recorded around a training loop and saved at its end, and when memory runs out.

    from tb_memplugin.capture import torch_memory
    with torch_memory("/tmp/xprof") as memory:
        for number, batch in enumerate(batches):
            with memory.step(number):
                train_step(batch)

Files are those of torch.cuda.memory._dump_snapshot, which PyTorch's own viewer reads too.
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
# Of the ring of events, which lasts for some hundred steps of a large model and takes a few hundred megabytes.
MAX_ENTRIES = 1_000_000
NO_GPU = "PyTorch sees no GPU, and records the memory of GPUs only"


@contextmanager
def torch_memory(logdir: str, *, max_entries: int = MAX_ENTRIES, stacks: str = "all") -> Iterator[TorchMemory]:
    """Records every allocation and free, with stacks, and saves a snapshot when the block is left.

    Into `<logdir>/torch_memory/<when it began>/`, one file for each process, `rank0.pickle`. When the device runs out
    of memory, what it held then is saved beside it as `rank0.oom.pickle`, whether the error is caught or not.

    `stacks`: "all" has frames of C++ too, by which operators are named and gradients are known: the backward pass has
    no Python frames. Looking up their names may take minutes on leaving; "python" leaves them out. PyTorch says that
    recording costs 2 us for an allocation. ValueError for other stacks.

    Training goes on whatever happens here: without a GPU that PyTorch sees, and where a file cannot be written, there
    is a RuntimeWarning and no file.
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
    recorder.watch()
    try:
        yield recorder
    finally:
        recorder.save_if_possible()
        recorder.done = True
        history._record_memory_history(enabled=None)


class TorchMemory:
    """One recording; `files` are the paths of what was saved."""

    def __init__(self, folder: str) -> None:
        rank = torch.distributed.get_rank() if torch.distributed.is_available() and _distributed() else 0
        self._path = os.path.join(folder, f"rank{rank}")
        self.files: list[str] = []
        self.done = False

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """An iteration of the loop: an annotation of the snapshot, from PyTorch 2.5 on."""
        with torch.profiler.record_function(f"step {number}"):
            yield

    def save(self, suffix: str = "") -> str:
        """Saves what is known so far, and returns the path of the file: whole or not at all.

        RuntimeError without a GPU, OSError where the file cannot be written.
        """
        if not torch.cuda.is_available():
            raise RuntimeError(NO_GPU)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        path = f"{self._path}{suffix}.pickle"
        beside = f"{path}.{os.getpid()}.part"
        memory: Any = torch.cuda.memory
        memory._dump_snapshot(beside)
        os.replace(beside, path)
        if path not in self.files:
            self.files.append(path)
        return path

    def save_if_possible(self, suffix: str = "") -> None:
        """A warning where it is not: neither hours of training nor the error of an allocator are to be lost to it."""
        try:
            self.save(suffix)
        except Exception as error:
            warnings.warn(f"The memory snapshot could not be saved: {error}", RuntimeWarning, stacklevel=2)

    def watch(self) -> None:
        """Saves when memory runs out, before anything is freed. An observer cannot be taken away again."""
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is None:
            return

        def ran_out(device: int, asked: int, device_total: int, device_free: int) -> None:
            if not self.done:
                self.save_if_possible(".oom")

        attach(ran_out)


def _distributed() -> bool:
    return bool(torch.distributed.is_initialized())
