"""Tracing a program without a GPU: the memory that it would allocate, as a snapshot of PyTorch's allocator."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tb_memplugin.torch_fit.assumptions import Assumptions
from tb_memplugin.torch_fit.devices import PretendedGpu, cuda_functions, pretended_gpu
from tb_memplugin.torch_fit.storages import MemoryLog, StorageTracker
from tb_memplugin.torch_fit.workspaces import Workspaces


@dataclass
class TracedProgram:
    """A traced program: its memory events, and what was assumed."""

    log: MemoryLog = field(default_factory=MemoryLog)
    assumptions: Assumptions = field(default_factory=Assumptions)
    marks: list[int] = field(default_factory=list)  # events before each mark

    def mark(self) -> None:
        """Mark the end of a step."""
        self.marks.append(len(self.log.events))


@contextmanager
def trace() -> Iterator[TracedProgram]:
    """Trace the block as if there was a GPU; nothing of it is allocated."""
    found = TracedProgram()
    tracker = StorageTracker(found.log, Workspaces(), found.assumptions)
    mode = PretendedGpu(tracker)
    with pretended_gpu(mode, cuda_functions("NVIDIA H100 80GB HBM3", (9, 0), 80 << 30, 132)):
        yield found
    gc.collect()
