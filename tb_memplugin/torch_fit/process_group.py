"""The other processes of a job, which are not there: this one is a rank among them, and what it receives has no values.

PyTorch's own `fake` backend ends each collective at once. `torch.distributed` acts as if torchrun had started the
process. NCCL's buffers are outside of PyTorch's allocator, and left out.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.distributed as dist

from tb_memplugin.errors import InputError
from tb_memplugin.targets import DEVICES_PER_HOST
from tb_memplugin.torch_fit.assumptions import Assumptions, user_line
from tb_memplugin.torch_fit.storages import completed
from tb_memplugin.torch_fit.streams import CudaFunction

NO_NCCL = "NCCL's buffers are outside of PyTorch's allocator, and not included"
NO_GROUP = "No process group is started, so the step is that of one GPU: call torch.distributed.init_process_group()"


class Rank(NamedTuple):
    """One process of a job with a GPU for each."""

    number: int = 0
    of: int = 1

    @property
    def gpus(self) -> int:
        """Return how many GPUs the host has."""
        return min(self.of, DEVICES_PER_HOST)

    @property
    def local(self) -> int:
        """Return the number of this process's GPU on its host."""
        return self.number % DEVICES_PER_HOST

    def variables(self) -> dict[str, str]:
        """Return the environment that torchrun sets."""
        hosts, host = -(-self.of // DEVICES_PER_HOST), self.number // DEVICES_PER_HOST
        values = {
            "RANK": self.number, "LOCAL_RANK": self.local, "WORLD_SIZE": self.of, "LOCAL_WORLD_SIZE": self.gpus,
            "GROUP_RANK": host, "GROUP_WORLD_SIZE": hosts, "MASTER_ADDR": "localhost", "MASTER_PORT": 29500,
            "TORCHELASTIC_RUN_ID": "none",
        }  # fmt: skip
        return {name: str(value) for name, value in values.items()}


ALONE = Rank()


def rank_of(processes: int) -> Rank:
    """Return the rank of this process, which the variable RANK sets; InputError where there are not so many."""
    text = os.environ.get("RANK", "0") if processes > 1 else "0"
    if not text.isdecimal() or int(text) >= processes:
        raise InputError("No such rank", f"RANK={text}", f"set it to a number below {processes}")
    return Rank(int(text), processes)


@contextmanager
def pretended_group(rank: Rank, assumptions: Assumptions) -> Iterator[None]:
    """Run a block as one of several processes. A group that it starts ends with it, also after an error."""
    if not dist.is_available():
        yield
        return
    with ExitStack() as stack:
        if not dist.is_initialized():
            stack.callback(_end_group)
        if rank.of > 1:
            stack.enter_context(patch.dict(os.environ, rank.variables()))
        for name, function in _functions(rank, assumptions).items():
            for module in (dist, dist.distributed_c10d, dist.device_mesh):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, function))
        parallel = torch.nn.parallel.DistributedDataParallel
        stack.enter_context(patch.object(parallel, "__init__", _reduced_by_hook(parallel.__init__)))
        stack.enter_context(patch.object(parallel, "register_comm_hook", _register_comm_hook))
        stack.enter_context(patch.object(torch.multiprocessing, "spawn", _spawning(rank)))
        if rank.gpus > 1:
            stack.enter_context(patch.object(torch.nn.DataParallel, "__init__", _refuse_copies))
        yield
        # A program may have ended its group.
        if rank.of > 1 and not dist.is_initialized() and NO_NCCL not in assumptions.found:
            assumptions.note(NO_GROUP)


def _end_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _functions(rank: Rank, assumptions: Assumptions) -> dict[str, CudaFunction]:
    """Return functions of torch.distributed for a process whose peers do what it does."""

    def init_process_group(*args: object, **options: object) -> None:
        if dist.is_initialized():
            return
        from torch.testing._internal.distributed.fake_pg import FakeStore

        assumptions.note(NO_NCCL)
        start("fake", rank=rank.number, world_size=rank.of, store=FakeStore())

    def all_gather_object(received: list[Any], sent: Any, *args: object, **options: object) -> None:
        received[:] = [sent] * len(received)

    def gather_object(sent: Any, received: list[Any] | None = None, *args: object, **options: object) -> None:
        if received is not None:
            all_gather_object(received, sent)

    def scatter_object_list(received: list[Any], sent: list[Any] | None, *args: object, **options: object) -> None:
        if sent:
            received[0] = sent[rank.number % len(sent)]

    def nothing(*args: object, **options: object) -> None: ...

    start = dist.distributed_c10d.init_process_group
    found = (init_process_group, all_gather_object, gather_object, scatter_object_list)
    functions: dict[str, CudaFunction] = {one.__name__: one for one in found}
    quiet = ("broadcast_object_list", "barrier", "monitored_barrier", "_verify_params_across_processes")
    return functions | dict.fromkeys(quiet, nothing)


def _reduced_by_hook(make: CudaFunction) -> CudaFunction:
    """Return DDP's constructor. Its reducer expects results that no peer sends: a hook returns the bucket instead."""

    def summed(bucket: Any) -> Any:
        return completed(bucket.buffer())

    def __init__(self: Any, *args: object, **options: object) -> None:
        make(self, *args, **options)
        self._hooks_of_trace = hooks = [summed]  # the last one is called
        dist._register_comm_hook(self.reducer, None, lambda _, bucket: hooks[-1](bucket))

    return __init__


def _register_comm_hook(self: Any, state: object, hook: CudaFunction) -> None:
    self._hooks_of_trace.append(partial(hook, state))


def _refuse_copies(*args: object, **options: object) -> None:
    remedy = "wrap the model in DistributedDataParallel, or trace one GPU"
    raise InputError(
        "DataParallel copies the model to GPUs of one process, and one of them is traced", user_line(), remedy
    )


def _spawning(rank: Rank) -> CudaFunction:
    """Return torch.multiprocessing.spawn, which runs this process's part only."""

    def spawn(function: CudaFunction, args: tuple[Any, ...] = (), *rest: object, **options: object) -> None:
        function(rank.local, *args)

    return spawn
