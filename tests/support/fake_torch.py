"""A stand-in for PyTorch with the tests' allocator, for recording a training loop without a GPU."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from support.caching_allocator import MIB, CachingAllocator


class FakeTorch:
    """Replace the functions of PyTorch that are called, with the names and arguments of version 2.13."""

    def __init__(self) -> None:
        self.allocator = CachingAllocator(limit=64 * MIB)
        self.marks: list[dict[str, Any]] = []
        self.history: list[str | None] = []
        self.observers: list[Any] = []
        self.has_gpu = True

    def alloc(self, size: int) -> int | None:
        address = self.allocator.alloc(size)
        if address is None:
            for observer in self.observers:
                observer(0, size, 64 * MIB, 0)
        return address

    @contextmanager
    def record_function(self, name: str) -> Iterator[None]:
        self.mark(name, "START")
        yield
        self.mark(name, "END")

    def mark(self, name: str, stage: str) -> None:
        self.allocator.clock += 1
        self.marks.append({"device": 0, "time_us": self.allocator.clock, "name": name, "stage": stage})

    def dump(self, filename: str, augment_with_fx_traces: bool = False) -> None:
        Path(filename).write_bytes(pickle.dumps(self.allocator.snapshot(external_annotations=self.marks)))

    def record(
        self, enabled: str | None = "all", context: str = "all", stacks: str = "all", max_entries: int = sys.maxsize
    ) -> None:
        self.history.append(enabled)

    def module(self) -> ModuleType:
        torch, cuda, memory = ModuleType("torch"), ModuleType("torch.cuda"), ModuleType("torch.cuda.memory")
        memory.__dict__.update(_dump_snapshot=self.dump, _record_memory_history=self.record)
        cuda.__dict__.update(memory=memory, is_available=lambda: self.has_gpu)
        profiler, distributed, core = ModuleType("profiler"), ModuleType("distributed"), ModuleType("_C")
        profiler.__dict__.update(record_function=self.record_function)
        distributed.__dict__.update(is_available=lambda: False)
        core.__dict__.update(_cuda_attach_out_of_memory_observer=self.observers.append)
        torch.__dict__.update(cuda=cuda, profiler=profiler, distributed=distributed, _C=core)
        return torch
