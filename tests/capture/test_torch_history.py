"""Recording of a PyTorch training loop, with PyTorch replaced by a stand-in that uses the tests' allocator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.caching_allocator import MIB
from support.fake_torch import FakeTorch
from support.servers import REPOSITORY, TESTS

from tb_memplugin.capture.new_files import process_name
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import SpanKind


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
    assert Path(file).name == f"rank0_{process_name()}.pickle"  # other processes may write to the folder
    [recording] = listing_of_path(str(tmp_path)).recordings
    host = f"rank0_{process_name()}"
    assert (recording.kind, recording.host, recording.memory) == ("torch_snapshot", host, "cuda:0")
    assert recording.spans is not None
    assert [recording.spans.name[i] for i in range(len(recording.spans))] == ["step 0", "step 1", "step 2"]
    assert set(recording.spans.kind.tolist()) == {SpanKind.STEP}


def test_when_memory_runs_out_what_was_held_is_saved_beside(torch: FakeTorch, tmp_path: Path) -> None:
    from tb_memplugin.capture import torch_memory

    with pytest.raises(RuntimeError, match="out of memory"), torch_memory(str(tmp_path)) as memory:
        torch.alloc(30 * MIB)
        if torch.alloc(50 * MIB) is None:
            raise RuntimeError("CUDA out of memory")
    stem = f"rank0_{process_name()}"
    assert [Path(file).name for file in memory.files] == [f"{stem}.oom.pickle", f"{stem}.pickle"]
    failures = [recording.out_of_memory for recording in listing_of_path(str(tmp_path)).recordings]
    assert [failure.asked for failure in failures if failure] == [50 * MIB] * 2
    torch.alloc(90 * MIB)
    assert len(memory.files) == 2  # the observer stays registered, and does nothing more


def test_stacks_that_pytorch_does_not_have_are_refused(torch: FakeTorch, tmp_path: Path) -> None:
    from tb_memplugin.capture import torch_memory

    with pytest.raises(ValueError, match="give 'python' or 'all'"), torch_memory(str(tmp_path), stacks="c"):
        pass


def test_without_a_gpu_the_loop_runs_and_one_line_says_that_nothing_is_recorded(
    torch: FakeTorch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from tb_memplugin.capture import torch_memory

    torch.has_gpu = False
    ran = []
    with torch_memory(str(tmp_path)) as memory:
        with memory.step(0):
            ran.append(0)
        assert memory.save() is None  # an exception would end the training
    assert ran == [0]
    [line] = caplog.messages
    assert "no GPU" in line and "\n" not in line
    assert memory.files == [] and torch.history == [] and not list(tmp_path.iterdir())


def test_what_cannot_be_saved_stops_nothing(torch: FakeTorch, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from tb_memplugin.capture import torch_memory

    (tmp_path / "file").write_bytes(b"")
    with torch_memory(str(tmp_path / "file")):
        assert torch.alloc(90 * MIB) is None  # the allocator's own error is still raised
        assert len(caplog.messages) == 1
    [line] = caplog.messages  # once for both snapshots
    assert "could not be saved" in line and "\n" not in line
    assert torch.history == ["all", None]


@pytest.mark.parametrize("failing", ["is_available", "record", "dump", "record_function", "get_rank", "attach"])
@pytest.mark.parametrize(
    "error", [RuntimeError("CUDA error"), NotImplementedError(), AttributeError("no"), MemoryError()]
)
def test_no_failure_of_pytorch_ends_the_training(
    torch: FakeTorch, tmp_path: Path, failing: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    from tb_memplugin.capture import torch_memory

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    module: Any = sys.modules["torch"]
    module.distributed.__dict__.update(is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 3)
    owner, name = {
        "is_available": (module.cuda, "is_available"),
        "record": (module.cuda.memory, "_record_memory_history"),
        "dump": (module.cuda.memory, "_dump_snapshot"),
        "record_function": (module.profiler, "record_function"),
        "get_rank": (module.distributed, "get_rank"),
        "attach": (module._C, "_cuda_attach_out_of_memory_observer"),
    }[failing]
    setattr(owner, name, fail)
    ran = []
    with pytest.raises(KeyError, match="mine"), torch_memory(tmp_path) as memory:
        for number in range(3):
            with memory.step(number):
                ran.append(number)
            memory.save()
        raise KeyError("mine")
    assert ran == [0, 1, 2]
    assert 1 <= len(caplog.messages) <= 2  # of one cause when recording begins, and of one when it ends
    assert not any("\n" in line for line in caplog.messages)
    assert all(path.suffix == ".pickle" for path in tmp_path.rglob("*.*"))


PROCESS = """
import sys, time
from support.fake_torch import FakeTorch
from support.caching_allocator import MIB

fake = FakeTorch()
torch = sys.modules["torch"] = fake.module()
time.strftime = lambda form: "2026_01_01_00_00_00"
from tb_memplugin.capture import torch_memory

print("ready", flush=True)
sys.stdin.readline()
with torch_memory(sys.argv[1]) as memory:  # as with mpirun, before init_process_group
    torch.distributed.__dict__.update(is_available=lambda: True, is_initialized=lambda: True)
    torch.distributed.get_rank = lambda: int(sys.argv[2]) % 2  # two trainings of two ranks each
    fake.alloc(4 * MIB)
    memory.save()
print(*memory.files)
"""


def test_processes_that_start_together_write_files_of_their_own_into_one_run(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY, TESTS)))}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for number in range(4)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    outputs = [process.communicate("go\n", timeout=120)[0] for process in processes]
    paths = [output.strip() for output in outputs]
    assert len(set(paths)) == 4
    [folder] = (tmp_path / "torch_memory").iterdir()
    assert sorted(paths) == sorted(map(str, folder.iterdir()))
    assert sorted(Path(path).name.split("_")[0] for path in paths) == ["rank0", "rank0", "rank1", "rank1"]
    found = listing_of_path(str(tmp_path)).recordings
    assert (len(found), len({recording.run for recording in found})) == (4, 1)


def test_a_snapshot_is_written_to_a_remote_logdir(torch: FakeTorch) -> None:
    import fsspec

    from tb_memplugin.capture import torch_memory

    with torch_memory("memory://torch_logdir/x") as memory:
        torch.alloc(4 * MIB)
        memory.save()
    [path] = memory.files
    assert path.startswith("memory://torch_logdir/x/torch_memory/")
    found = list(fsspec.filesystem("memory").find("/torch_logdir"))
    assert ["memory:/" + name for name in found] == [path]
    [recording] = listing_of_path("memory://torch_logdir").recordings
    assert recording.kind == "torch_snapshot"


def test_neither_framework_is_loaded_for_the_other() -> None:
    code = "import sys, tb_memplugin.capture; print(*{'jax', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split() == []
