"""Recording of a PyTorch training loop, with PyTorch replaced by a stand-in that uses the tests' allocator."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.caching_allocator import MIB, CachingAllocator

from tb_memplugin.catalog import listing_of_path
from tb_memplugin.model.kinds import SpanKind


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


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake.module())
    monkeypatch.delitem(sys.modules, "tb_memplugin.capture.torch_history", raising=False)
    return fake


def test_a_loop_is_recorded_with_its_steps_and_read_again(torch: FakeTorch, tmp_path: Path) -> None:
    from tb_memplugin.capture import torch_memory

    with torch_memory(str(tmp_path)) as memory:
        for number in range(3):
            with memory.step(number):
                address = torch.alloc(4 * MIB)
                assert address is not None
                torch.allocator.free(address)
    assert torch.history == ["all", None]
    [file] = memory.files
    assert Path(file).name == "rank0.pickle"
    [recording] = listing_of_path(str(tmp_path)).recordings
    assert (recording.kind, recording.host, recording.memory) == ("torch_snapshot", "rank0", "cuda:0")
    assert recording.spans is not None
    assert [recording.spans.name[i] for i in range(len(recording.spans))] == ["step 0", "step 1", "step 2"]
    assert set(recording.spans.kind.tolist()) == {SpanKind.STEP}


def test_when_memory_runs_out_what_was_held_is_saved_beside(torch: FakeTorch, tmp_path: Path) -> None:
    from tb_memplugin.capture import torch_memory

    with pytest.raises(RuntimeError, match="out of memory"), torch_memory(str(tmp_path)) as memory:
        torch.alloc(30 * MIB)
        if torch.alloc(50 * MIB) is None:
            raise RuntimeError("CUDA out of memory")
    assert [Path(file).name for file in memory.files] == ["rank0.oom.pickle", "rank0.pickle"]
    failures = [recording.out_of_memory for recording in listing_of_path(str(tmp_path)).recordings]
    assert [failure.asked for failure in failures if failure] == [50 * MIB] * 2
    torch.alloc(90 * MIB)
    assert len(memory.files) == 2  # the observer stays registered, and does nothing more


def test_stacks_that_pytorch_does_not_have_are_refused(torch: FakeTorch, tmp_path: Path) -> None:
    from tb_memplugin.capture import torch_memory

    with pytest.raises(ValueError, match="give 'python' or 'all'"), torch_memory(str(tmp_path), stacks="c"):
        pass


def test_without_a_gpu_the_loop_runs_and_a_warning_says_that_nothing_is_saved(torch: FakeTorch, tmp_path: Path) -> None:
    from tb_memplugin.capture import torch_memory

    torch.has_gpu = False
    ran = []
    with pytest.warns(RuntimeWarning, match="no GPU") as warned, torch_memory(str(tmp_path)) as memory:
        with memory.step(0):
            ran.append(0)
        with pytest.raises(RuntimeError, match="no GPU"):
            memory.save()
    assert ran == [0]
    assert [Path(warning.filename).name for warning in warned] == [Path(__file__).name]
    assert memory.files == [] and torch.history == [] and not list(tmp_path.iterdir())


def test_what_cannot_be_saved_stops_nothing(torch: FakeTorch, tmp_path: Path) -> None:
    from tb_memplugin.capture import torch_memory

    (tmp_path / "file").write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="could not be saved") as warned, torch_memory(str(tmp_path / "file")):
        assert torch.alloc(90 * MIB) is None  # the observer warns, and the allocator's own error is still raised
        assert len(warned) == 1
    assert len(warned) == 2
    assert torch.history == ["all", None]


def test_neither_framework_is_loaded_for_the_other() -> None:
    code = "import sys, tb_memplugin.capture; print(*{'jax', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split() == []
