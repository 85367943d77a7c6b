"""Tracing a training step of a user, which is run twice: the optimizer's state exists since the first one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import OfTorch
from tb_memplugin.torch_fit.changed_step import TorchStep, changed, halved
from tb_memplugin.torch_fit.process_group import Rank
from tb_memplugin.torch_fit.tracing import TracedProgram, trace

EXAMPLE = "def step(batch=8): ... return model, optimizer, train_step"
RUNS = 2


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
