"""Steps of one process among several, against the same steps on real tensors of the CPU, as PyTorch's profiler saw."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import torch.distributed as dist  # noqa: E402
from support.traced_memory import NOT_OF_OLD, live_bytes  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor.parallel import (  # noqa: E402
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from tb_memplugin import capture  # noqa: E402
from tb_memplugin.errors import InputError  # noqa: E402
from tb_memplugin.torch_fit.process_group import Rank, rank_of  # noqa: E402
from tb_memplugin.torch_fit.storages import WORKSPACE_FRAME  # noqa: E402
from tb_memplugin.torch_fit.tracing import trace  # noqa: E402

PROCESSES, WIDTH, MIB = 4, 256, 1 << 20
Parallelized = Callable[[Any, Any], Any]


def sharded(model: Any, mesh: Any, **options: object) -> Any:
    for block in model:
        fully_shard(block, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def replicated(model: Any, mesh: Any, **options: object) -> Any:
    return torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1, **options)


def tensor_parallel(model: Any, mesh: Any) -> Any:
    for block in model:
        parallelize_module(block, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return model


def compressed(model: Any, mesh: Any) -> Any:
    parallel = replicated(model, mesh)
    parallel.register_comm_hook(None, bf16_compress_hook if mesh.device_type == "cuda" else compressed_alone)
    parallel.has_own_hook = True
    return parallel


def compressed_alone(state, bucket):  # type: ignore[no-untyped-def]
    """Do what the hook does but for the collective, whose future has no value without peers."""
    half = bucket.buffer().to(torch.bfloat16).div_(PROCESSES)
    future = torch.futures.Future()
    future.set_result([half])
    return future.then(lambda ended: bucket.buffer().copy_(ended.value()[0]))


PARALLEL: dict[str, Parallelized] = {
    "fsdp": sharded,
    "fsdp_kept": lambda model, mesh: sharded(model, mesh, reshard_after_forward=False),
    "ddp": replicated,
    "ddp_views": lambda model, mesh: replicated(model, mesh, gradient_as_bucket_view=True),
    "ddp_hook": compressed,
    "tensor": tensor_parallel,
}


def run(parallelized: Parallelized, device: str, group: Callable[[], None]) -> None:
    group()
    mesh = init_device_mesh(device, (PROCESSES,))
    blocks = [
        torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH))
        for _ in range(4)
    ]
    model = parallelized(torch.nn.Sequential(*blocks).to(device), mesh)
    if device == "cpu" and hasattr(model, "register_comm_hook") and not hasattr(model, "has_own_hook"):
        model.register_comm_hook(None, summed)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    batch = torch.randn(512, WIDTH, device=device)
    for _ in range(2):
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def summed(state, bucket):  # type: ignore[no-untyped-def]  # PyTorch refuses annotations that are text
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def without_peers() -> None:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=PROCESSES, store=FakeStore())


def real_bytes(parallelized: Parallelized, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return the most bytes, and those at the end, that the CPU's allocator had."""
    monkeypatch.setattr(dist, "_verify_params_across_processes", lambda *arguments: None)
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiled:
            run(parallelized, "cpu", without_peers)
    finally:
        dist.destroy_process_group()
    events = [one for one in profiled.profiler.kineto_results.events() if one.name() == "[memory]"]
    live = list(accumulate(one.nbytes() for one in sorted(events, key=lambda one: one.start_ns())))
    return max(live), live[-1]


@pytest.mark.parametrize("name", [name if "ddp" in name else pytest.param(name, marks=NOT_OF_OLD) for name in PARALLEL])
def test_a_process_asks_for_what_it_asks_for_on_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with trace("h100", Rank(0, PROCESSES)) as traced:
        run(PARALLEL[name], "cuda", lambda: dist.init_process_group("nccl"))
        live = live_bytes(traced.log, without=WORKSPACE_FRAME)
    assert (name == "ddp_hook") == any(function == bf16_compress_hook.__name__ for function, _, _ in traced.log.frames)
    assert (max(live), live[-1]) == pytest.approx(real_bytes(PARALLEL[name], monkeypatch), rel=1e-5, abs=256)
    assert not dist.is_initialized()


def test_each_rank_is_a_process_of_torchrun() -> None:
    found: dict[str, Any] = {}

    def train() -> None:
        dist.init_process_group()
        found["rank"] = dist.get_rank(), dist.get_world_size(), torch.cuda.device_count(), torch.cuda.current_device()
        found["variables"] = {name: os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
        tensor = torch.ones(4, device=torch.device("cuda", dist.get_rank() % 8))
        dist.all_reduce(tensor)
        gathered: list[object] = [None] * 16
        dist.all_gather_object(gathered, {"loss": 1})
        found["gathered"], found["device"] = gathered, tensor.device

    capture.torch_preview(train, "h100:16", rank=11)
    assert found["rank"] == (11, 16, 8, 3) and str(found["device"]) == "cuda:3"
    assert found["variables"] == {"RANK": "11", "LOCAL_RANK": "3", "WORLD_SIZE": "16"}
    assert found["gathered"] == [{"loss": 1}] * 16


def test_a_reduced_value_counts_as_this_process_has_it_and_the_answer_says_so() -> None:
    def train() -> None:
        dist.init_process_group()
        tokens = torch.tensor(512, device="cuda")
        dist.all_reduce(tokens)
        assert tokens.item() == 512

    found = capture.torch_preview(train, "h100:8").assumptions.found
    assert "A value that is read on the GPU counts as 512" in found


def test_an_error_leaves_no_group_behind() -> None:
    def train() -> None:
        dist.init_process_group()
        raise KeyError("loss")

    for _ in range(2):
        with pytest.raises(KeyError):
            capture.torch_preview(train, "h100:8")
        assert not dist.is_initialized()


def test_streams_do_not_share_free_memory() -> None:
    def allocate(stream: Any) -> None:
        for _ in range(2):
            with torch.cuda.stream(stream):
                torch.empty(MIB, device="cuda")
            torch.empty(MIB, device="cuda")

    own = capture.torch_preview(lambda: allocate(torch.cuda.Stream())).snapshot()["segments"]
    assert sorted((one["stream"], one["total_size"]) for one in own) == [(0, 20 * MIB), (1, 20 * MIB)]
    [one] = capture.torch_preview(lambda: allocate(torch.cuda.current_stream())).snapshot()["segments"]
    assert one["stream"] == 0


@pytest.mark.parametrize("text", ["4", "-1", "first"])
def test_a_rank_that_is_not_there_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", text)
    assert rank_of(1) == Rank(0, 1)
    with pytest.raises(InputError, match=re.escape(f"RANK={text}")):
        rank_of(4)


def test_tensors_are_printed_without_values(capsys: pytest.CaptureFixture[str]) -> None:
    with trace():
        print(torch.ones(3, device="cuda"), torch.ones(2))
    assert capsys.readouterr().out == "tensor(..., device='cuda:0', size=(3,), dtype=torch.float32) tensor([1., 1.])\n"


@NOT_OF_OLD
@pytest.mark.parametrize("width", [64, 1024])
def test_sharded_parameters_are_made_on_meta_and_drawn_on_the_gpu(width: int) -> None:
    def train() -> None:
        device = torch.device(f"{torch.accelerator.current_accelerator()}:{os.environ['RANK']}")
        dist.init_process_group(device_id=device)
        with torch.device("meta"):
            model = torch.nn.Linear(width, width)
        fully_shard(model).to_empty(device=device)
        model.reset_parameters()
        assert str(model.weight.device) == "cuda:1"
        dist.destroy_process_group()

    traced = capture.torch_preview(train, "h100:4", rank=1)
    assert max(live_bytes(traced.log)) < width**2 * 1.5, "a fourth of the weight's bytes"
    assert not any("No process group" in text for text in traced.assumptions.found)


def test_a_program_may_record_its_own_memory(tmp_path: Path) -> None:
    def train() -> None:
        torch.cuda.memory._record_memory_history(max_entries=1000)
        torch.ones(3, device="cuda")
        torch.cuda.memory._dump_snapshot(str(tmp_path / "own.pickle"))
        assert torch.cuda.memory._snapshot()["segments"] == []
        assert torch.cuda.memory.max_memory_allocated() == torch.cuda.max_memory_allocated() == 0
        torch.cuda.memory._record_memory_history(enabled=None)

    assert capture.torch_preview(train).log.allocated == 1
    assert not [*tmp_path.iterdir()]


def test_copies_within_one_process_are_refused() -> None:
    model = torch.nn.Linear(8, 8)
    with pytest.raises(InputError, match=r"DataParallel copies .* test_many_gpus.py:\d+: wrap"):
        capture.torch_preview(lambda: torch.nn.DataParallel(model.cuda()), "h100:2")
    capture.torch_preview(lambda: torch.nn.DataParallel(model.cuda()), "h100")


def test_a_step_without_a_group_says_so() -> None:
    with trace("h100", Rank(0, 8)) as traced:
        torch.ones(3, device="cuda")
    assert any("No process group" in one.text for one in traced.assumptions.found.values())
