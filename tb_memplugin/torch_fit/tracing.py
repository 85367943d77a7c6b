"""Tracing a program without a GPU, and what its allocator would have done, as a memory snapshot of PyTorch."""

import gc
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import GPUS
from tb_memplugin.model.fit import OfTorch
from tb_memplugin.readers.torch_snapshot.recordings import TRACED_FOR, USABLE_BYTES
from tb_memplugin.targets import targets_to_try, usable_by_torch
from tb_memplugin.torch_fit.assumptions import Assumptions
from tb_memplugin.torch_fit.caching_allocator import Block, CachingAllocator
from tb_memplugin.torch_fit.changed_step import TorchStep, changed, halved
from tb_memplugin.torch_fit.devices import PretendedGpu, cuda_functions, pretended_gpu
from tb_memplugin.torch_fit.process_group import ALONE, Rank, pretended_group
from tb_memplugin.torch_fit.storages import MemoryLog, StorageTracker
from tb_memplugin.torch_fit.workspaces import Workspaces

PARAMETER_FRAME = {"name": "__new__", "filename": torch.nn.parameter.__file__, "line": 0}


@dataclass
class TracedProgram:
    """A program traced for a GPU: its memory events, and what was assumed."""

    chip: str
    rank: Rank = ALONE
    log: MemoryLog = field(default_factory=MemoryLog)
    assumptions: Assumptions = field(default_factory=Assumptions)
    marks: list[int] = field(default_factory=list)  # events before each mark

    def mark(self) -> None:
        """Mark the end of a step."""
        self.marks.append(len(self.log.events))

    def snapshot(self) -> dict[str, Any]:
        """Return what `torch.cuda.memory._snapshot` would: segments, and events with stacks, of one device.

        The allocator releases free memory where the GPU's is full, as on the GPU.
        """
        frames = [{"name": name, "filename": file or "??", "line": line} for name, file, line in self.log.frames]
        stacks = [[frames[number] for number in stack] for stack in self.log.stacks]
        of_parameters = {
            event.stack: [PARAMETER_FRAME, *stacks[event.stack]]
            for event in self.log.events
            if event.size >= 0 and event.number in self.log.parameters
        }
        entries: list[dict[str, Any]] = []

        def report(action: str, address: int, size: int, stack: int, stream: int, parameter: bool = False) -> None:
            where = of_parameters[stack] if parameter else stacks[stack] if stack >= 0 else []
            entries.append({"action": action, "addr": address, "size": size, "stream": stream, "frames": where})

        allocator, blocks = CachingAllocator(report, usable_by_torch(self.chip)), dict[int, Block]()
        for number, size, stack, stream in self.log.events:
            if size >= 0:
                blocks[number] = block = allocator.allocate(size, stack, stream)
                report("alloc", block.address, size, stack, stream, number in self.log.parameters)
            else:
                block = blocks.pop(number)
                for action in ("free_requested", "free_completed"):
                    report(action, block.address, block.requested, stack, block.segment.stream)
                allocator.free(block)
        segments = [segment.described(stacks) for segment in allocator.segments.values()]
        settings = {TRACED_FOR: self.chip, USABLE_BYTES: usable_by_torch(self.chip)}
        return {"segments": segments, "device_traces": [entries], "allocator_settings": settings}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the snapshot to a new file, which PyTorch's own viewer opens, too."""
        with open(path, "xb") as file:
            pickle.dump(self.snapshot(), file)


def torch_preview(function: Callable[[], Any], on: str = "h100", rank: int = 0) -> TracedProgram:
    """Return what a function would allocate on a GPU, which need not be there. InputError for an unknown GPU.

    On several GPUs, such as `h100:8`, it is traced as the process of that rank, as if torchrun had started it.
    `torch_preview(train).save("step.pickle")` writes a memory snapshot.
    """
    target = targets_to_try(on)[0]
    if target.chip not in GPUS:
        raise InputError("No such GPU", on, f"use one of {', '.join(GPUS)}")
    with trace(target.chip, Rank(rank, target.devices)) as traced:
        function()
    return traced


@contextmanager
def trace(chip: str = "h100", rank: Rank = ALONE) -> Iterator[TracedProgram]:
    """Trace the code of a block as if there were a GPU. Its tensors have no memory."""
    gpu, found = GPUS[chip], TracedProgram(chip, rank)
    workspaces = Workspaces(gpu.compute_capability, gpu.core_count, found.assumptions)
    mode = PretendedGpu(StorageTracker(found.log, workspaces, found.assumptions), torch.device("cuda", rank.local))
    properties = gpu.name, gpu.compute_capability, gpu.device_memory_size, gpu.core_count
    functions = cuda_functions(mode, rank.gpus, *properties)
    with pretended_gpu(mode, functions), pretended_group(rank, found.assumptions):
        yield found
    found.log.is_closed = True
    gc.collect()


EXAMPLE = "def step(batch=8): ... return model, optimizer, train_step"
RUNS = 2  # of a training step: the optimizer's state exists since the first one


def trace_step(
    load: Callable[[], Callable[..., Any]],
    name: str,
    knobs: Mapping[str, Any],
    chip: str,
    rank: Rank,
    changes: Sequence[OfTorch] = (),
) -> TracedProgram:
    """Trace a step as one process of a job, with changes. `load` returns it: its file may use the GPU when imported.

    The step returns its model, its optimizer and a function that makes one training step, or runs such steps itself.
    InputError for a step that cannot be traced or changed.
    """
    with trace(chip, rank) as traced:
        make = load()
        made = make(**(halved(make, knobs, name) if OfTorch.ACCUMULATE in changes else knobs))
        run = _function_of(made, name)
        if changes:
            run = changed(_whole(made, run, name), changes)
        if run is not None:
            for _ in range(RUNS):
                run()
                traced.mark()
    if not traced.log.events:
        raise InputError("The step allocates nothing on the GPU", name, 'move the model to "cuda"')
    optimizers = [one for one in made if isinstance(one, torch.optim.Optimizer)] if isinstance(made, tuple) else []
    if optimizers and not traced.log.has_backward():
        raise InputError("The step has no backward pass", name, "call loss.backward() before optimizer.step()")
    return traced


def _function_of(made: Any, name: str) -> Callable[[], Any] | None:
    """Return the function that makes one step, from what a step returned; None if it ran such steps itself."""
    if made is None:
        return None
    functions = [one for one in made if _is_function(one)] if isinstance(made, tuple) else [made]
    if len(functions) == 1 and _is_function(functions[0]):
        return functions[0]  # type: ignore[no-any-return]
    kind = f"a tuple with {len(functions)} functions" if isinstance(made, tuple) else f"a {type(made).__name__}"
    raise InputError(f"The step returned {kind}", name, f"write it as in: {EXAMPLE}")


def _whole(made: Any, run: Callable[[], Any] | None, name: str) -> TorchStep:
    """Return the parts of a step."""
    parts = made if isinstance(made, tuple) else ()
    models = [one for one in parts if isinstance(one, torch.nn.Module)]
    optimizers = [one for one in parts if isinstance(one, torch.optim.Optimizer)]
    if run is None or len(models) != 1 or len(optimizers) != 1:
        raise InputError("The step does not return one model and one optimizer", name, f"write it as in: {EXAMPLE}")
    return TorchStep(name, models[0], optimizers[0], run)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, (torch.nn.Module, torch.optim.Optimizer))
