"""Tracing a program without a GPU, and what its allocator would have done, as a memory snapshot of PyTorch."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tb_memplugin.torch_fit.assumptions import Assumptions
from tb_memplugin.torch_fit.caching_allocator import Block, CachingAllocator
from tb_memplugin.torch_fit.devices import PretendedGpu, cuda_functions, pretended_gpu
from tb_memplugin.torch_fit.storages import MemoryLog, StorageTracker
from tb_memplugin.torch_fit.workspaces import Workspaces

# An H100: its kernels and workspaces are what the traces are compared with.
NAME, CAPABILITY, MEMORY, MULTIPROCESSORS = "NVIDIA H100 80GB HBM3", (9, 0), 85_017_493_504, 132


@dataclass
class TracedProgram:
    """A traced program: its memory events, and what was assumed."""

    log: MemoryLog = field(default_factory=MemoryLog)
    assumptions: Assumptions = field(default_factory=Assumptions)
    marks: list[int] = field(default_factory=list)  # events before each mark

    def mark(self) -> None:
        """Mark the end of a step."""
        self.marks.append(len(self.log.events))

    def snapshot(self) -> dict[str, Any]:
        """Return what `torch.cuda.memory._snapshot` would: segments, and events with stacks, of one device."""
        frames = [{"name": name, "filename": file or "??", "line": line} for name, file, line in self.log.frames]
        stacks = [[frames[number] for number in stack] for stack in self.log.stacks]
        entries: list[dict[str, Any]] = []

        def report(action: str, address: int, size: int, stack: int) -> None:
            where = stacks[stack] if stack >= 0 else []
            entries.append({"action": action, "addr": address, "size": size, "stream": 0, "frames": where})

        allocator, blocks = CachingAllocator(report), dict[int, Block]()
        for number, size, stack in self.log.events:
            if size >= 0:
                blocks[number] = block = allocator.allocate(size, stack)
                report("alloc", block.address, size, stack)
            else:
                block = blocks.pop(number)
                for action in ("free_requested", "free_completed"):
                    report(action, block.address, block.requested, stack)
                allocator.free(block)
        segments = [segment.described(stacks) for segment in allocator.segments.values()]
        return {"segments": segments, "device_traces": [entries]}

    def save(self, path: str) -> None:
        """Write the snapshot to a file, which PyTorch's own viewer opens, too."""
        with open(path, "xb") as file:
            pickle.dump(self.snapshot(), file)


@contextmanager
def trace() -> Iterator[TracedProgram]:
    """Trace the code of a block as if there were a GPU. Its tensors have no memory."""
    found = TracedProgram()
    workspaces = Workspaces(CAPABILITY, MULTIPROCESSORS, found.assumptions)
    mode = PretendedGpu(StorageTracker(found.log, workspaces, found.assumptions))
    with pretended_gpu(mode, cuda_functions(NAME, CAPABILITY, MEMORY, MULTIPROCESSORS)):
        yield found
    gc.collect()
