"""Changes to a training step of PyTorch, each as a user would make it, before the step is traced again.

A step returns its model, its optimizer and a function that makes one step. The function refers to the model and the
optimizer, so that these are changed in place.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import OfTorch
from tb_memplugin.model.fit_plan import batch_knob

MakeStep = Callable[[], Any]
QUANTIZED = 256  # values that share a scale in an 8-bit optimizer, as in bitsandbytes
CHUNKS, IGNORED = 8, -100  # of the loss; the label of tokens without one
LEAST_QUANTIZED = 4096  # values: the state of smaller parameters keeps its type


@dataclass
class TorchStep:
    """The parts of a step that a user's function returned."""

    name: str
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    run: MakeStep


def changed(step: TorchStep, changes: Sequence[OfTorch]) -> MakeStep:
    """Return the function that makes one step with changes. InputError for a change that the model does not allow."""
    for name in sorted(changes, key=[*CHANGES].index):
        CHANGES[name](step)
    return step.run


def _blocks(step: TorchStep) -> list[torch.nn.Module]:
    """Return the modules that repeat: of the class with the most parameters, those that are not inside of another."""
    lists = (torch.nn.ModuleList, torch.nn.Sequential)
    children: list[torch.nn.Module] = []
    for one in step.model.modules():
        children += one.children() if isinstance(one, lists) else ()
    count = Counter(map(type, children))
    size = Counter[type]()
    for child in children:
        if count[type(child)] > 1:
            size[type(child)] += sum(parameter.numel() for parameter in child.parameters())
    if not any(size.values()):
        raise InputError("The model has no repeated blocks", step.name, "put modules of one class into a ModuleList")
    kind: type[torch.nn.Module] = max(size, key=lambda one: size[one])
    found = [child for child in dict.fromkeys(children) if type(child) is kind]
    inner = {id(below) for one in found for below in one.modules() if below is not one}
    return [one for one in found if id(one) not in inner]


def _checkpoint(step: TorchStep) -> None:
    """Recompute each repeated block in the backward pass; models of Transformers do that themselves."""
    if callable(enable := getattr(step.model, "gradient_checkpointing_enable", None)):
        enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return
    for block in _blocks(step):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def _autocast(step: TorchStep) -> None:
    """Compute the forward pass in bfloat16 where autocast's lists say so."""
    run, backward, update = step.run, torch.autograd.backward, step.optimizer.step

    def outside(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: object, **options: object) -> Any:
            torch.clear_autocast_cache()
            with torch.autocast("cuda", enabled=False):
                return function(*args, **options)

        return call

    def run_in_bfloat16() -> None:
        with (
            patch.object(torch.autograd, "backward", outside(backward)),
            patch.object(step.optimizer, "step", outside(update)),
            torch.autocast("cuda", dtype=torch.bfloat16),
        ):
            run()

    step.run = run_in_bfloat16


def _fuse(step: TorchStep) -> None:
    """Update parameters with one kernel, which needs no temporary tensors."""
    if "fused" not in step.optimizer.defaults:
        raise InputError(f"{type(step.optimizer).__name__} is not fused", step.name, "use AdamW, for example")
    for group in step.optimizer.param_groups:
        group |= {"fused": True, "foreach": False}


def _quantize(step: TorchStep) -> None:
    """Keep the state of Adam in a byte for each value."""
    optimizer = step.optimizer
    if not isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW):
        raise InputError(f"{type(optimizer).__name__} has no 8-bit form here", step.name, "use AdamW, for example")

    class Quantized(type(optimizer)):  # type: ignore[misc]
        def step(self, closure: Callable[[], Any] | None = None) -> Any:
            found = closure() if closure is not None else None
            with torch.no_grad():
                for parameter in (one for group in self.param_groups for one in group["params"]):
                    if parameter.grad is not None and not self.state[parameter]:
                        parts = enumerate(part for _ in range(2) for part in _quantized(parameter))
                        self.state[parameter] = dict(parts)
            return found

    optimizer.__class__ = Quantized
    optimizer._patch_step_function()  # as the constructor of an optimizer does


def _quantized(parameter: torch.Tensor) -> Iterator[torch.Tensor]:
    if parameter.numel() < LEAST_QUANTIZED:
        yield torch.zeros_like(parameter)
        return
    local = getattr(parameter, "_local_tensor", parameter)
    yield torch.zeros_like(local, dtype=torch.uint8)
    yield torch.zeros(-(-local.numel() // QUANTIZED), device=local.device)


def _offload(step: TorchStep) -> None:
    """Keep what the backward pass needs in the memory of the host."""
    run = step.run

    def run_with_host() -> None:
        with torch.autograd.graph.save_on_cpu():
            run()

    step.run = run_with_host


def _clear(step: TorchStep) -> None:
    """Free gradients after the update, before the next forward pass."""
    run, clear = step.run, step.optimizer.zero_grad

    def run_and_clear() -> None:
        run()
        clear(set_to_none=True)

    step.run = run_and_clear


def _chunk_loss(step: TorchStep) -> None:
    """Compute logits and loss a chunk of the tokens at a time, again in the backward pass; of models of Transformers.

    Their `forward` hands what the head returns to `loss_function`: the head returns its input instead.
    """
    model: Any = step.model
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if head is None or not hasattr(model, "loss_function"):
        raise InputError("The model has no head and loss of Transformers", step.name, "chunk the loss in your own code")
    project = head.forward

    def loss_of(rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(project(rows).float(), targets, reduction="sum")

    def loss_function(logits: torch.Tensor, labels: torch.Tensor, *args: object, **options: object) -> torch.Tensor:
        rows, targets = logits.flatten(0, -2), F.pad(labels, (0, 1), value=IGNORED)[..., 1:].flatten()
        chunks = zip(rows.chunk(CHUNKS), targets.chunk(CHUNKS), strict=True)
        total = torch.stack([checkpoint(loss_of, *chunk, use_reentrant=False) for chunk in chunks]).sum()
        return total / targets.ne(IGNORED).sum()

    head.forward = lambda hidden: hidden
    model.loss_function = loss_function


def _compile(step: TorchStep) -> None:
    """Compile the model, in place."""
    compiled = torch._dynamo.OptimizedModule
    if any(isinstance(one, compiled) or one._compiled_call_impl is not None for one in step.model.modules()):
        raise InputError("The model is compiled already", step.name, "try without that")
    step.model.compile()


def _accumulate(step: TorchStep) -> None:
    """Run the step twice, on half of the batch each, with one update. `halved` halves the batch."""
    run = step.run

    def run_twice() -> None:
        _run_part(step, run, is_last=False)
        _run_part(step, run, is_last=True)

    step.run = run_twice


def _run_part(step: TorchStep, run: MakeStep, is_last: bool) -> None:
    """Run a step on a part of its batch: only the last one updates, and gradients are cleared once."""
    update, clear, updates = step.optimizer.step, step.optimizer.zero_grad, 0

    def update_last(*args: Any, **options: Any) -> Any:
        nonlocal updates
        updates += 1
        return update(*args, **options) if is_last else None

    def clear_once(*args: Any, **options: Any) -> None:
        if bool(updates) == is_last:  # before the first part, or after the update
            clear(*args, **options)

    with (
        patch.object(step.optimizer, "step", update_last),
        patch.object(step.optimizer, "zero_grad", clear_once),
        patch.object(step.model, "zero_grad", clear_once),
    ):
        run()


def halved(make: Callable[..., Any], knobs: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the knobs of a step for half of its batch. InputError for a step without a knob for it."""
    defaults = {name: one.default for name, one in inspect.signature(make).parameters.items()}
    values = {**defaults, **knobs}
    batch = batch_knob(values)
    if batch is None or not isinstance(values[batch], int):
        raise InputError("The step has no knob for its batch", name, "write step(batch=8)")
    return {**knobs, batch: -(-values[batch] // 2)}


def _shard(step: TorchStep) -> None:
    """Shard parameters, gradients and the optimizer's state over all processes, a block at a time."""
    import torch.distributed as dist
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel, fully_shard

    wrapped = FSDPModule | FullyShardedDataParallel | torch.nn.parallel.DistributedDataParallel
    if any(isinstance(module, wrapped) for module in step.model.modules()):
        raise InputError("The model is sharded or replicated already", step.name, "try without that")
    if not dist.is_initialized():
        dist.init_process_group()
    names = {id(parameter): name for name, parameter in step.model.named_parameters()}
    for block in _blocks(step):
        fully_shard(block)
    fully_shard(step.model)
    sharded = dict(step.model.named_parameters())
    for group in step.optimizer.param_groups:
        group["params"] = [sharded.get(names.get(id(one), ""), one) for one in group["params"]]


CHANGES: dict[OfTorch, Callable[[TorchStep], None]] = {  # in the order in which they are made
    OfTorch.FSDP: _shard,
    OfTorch.CHECKPOINT: _checkpoint,
    OfTorch.CHUNKED_LOSS: _chunk_loss,
    OfTorch.COMPILE: _compile,
    OfTorch.ACCUMULATE: _accumulate,
    OfTorch.FUSED: _fuse,
    OfTorch.EIGHT_BIT: _quantize,
    OfTorch.AUTOCAST: _autocast,
    OfTorch.OFFLOAD: _offload,
    OfTorch.CLEAR: _clear,
}
