"""Storages of a program that runs on tensors without memory: when each is made and freed, and by which code."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tb_memplugin.torch_fit.assumptions import Assumptions
from tb_memplugin.torch_fit.data_dependent import DATA_DEPENDENT
from tb_memplugin.torch_fit.workspaces import Workspaces

HERE = str(Path(__file__).parent)
CUDA, CPU, META = "cuda", "cpu", "meta"
MAX_REAL = 1 << 20  # elements: smaller tensors of the CPU are real, so that values such as step counts are
MAX_FRAMES = 200


class StorageEvent(NamedTuple):
    """An allocation, or with `size` -1 a free; `number` tells allocations apart. `stack` is an index of `stacks`."""

    number: int
    size: int
    stack: int


@dataclass
class MemoryLog:
    """Allocations and frees of a GPU in program order, with their stacks, innermost frame first."""

    events: list[StorageEvent] = field(default_factory=list)
    stacks: dict[tuple[int, ...], int] = field(default_factory=dict)
    frames: dict[tuple[str, str, int], int] = field(default_factory=dict)  # function, file, line
    allocated: int = 0  # how many allocations there were

    def add(self, size: int, operator: str) -> int:
        """Add an allocation with the current stack, and return its number."""
        self.allocated += 1
        self.events.append(StorageEvent(self.allocated, size, self.current_stack(operator)))
        return self.allocated

    def free(self, number: int) -> None:
        """Add the free of an allocation."""
        self.events.append(StorageEvent(number, -1, self.current_stack("")))

    def current_stack(self, operator: str) -> int:
        """Return the number of the current stack. An operator and its node of autograd become frames as in C++."""
        found = [self._frame(f"at::_ops::{operator}::call", "", 0)] if operator else []
        node = torch._C._current_autograd_node()
        if node is not None:
            found.append(self._frame(f"torch::autograd::generated::{node.name()}::apply", "", 0))
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and len(found) < MAX_FRAMES:
            code = frame.f_code
            if not code.co_filename.startswith(HERE):
                found.append(self._frame(code.co_name, code.co_filename, frame.f_lineno))
            frame = frame.f_back
        return self.stacks.setdefault(tuple(found), len(self.stacks))

    def _frame(self, name: str, file: str, line: int) -> int:
        return self.frames.setdefault((name, file, line), len(self.frames))


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of nested arguments."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, dict):
        yield from tensors_in(list(values.values()))


class StorageTracker(TorchDispatchMode):  # type: ignore[misc]
    """Runs each operation on tensors of the device `meta`, which have no memory, and logs the storages of the GPU.

    Each storage has a place: the GPU, the CPU, or `meta` where the program asked for that. `place` is where an
    operation without tensors makes them; `forced` overrides the place of whatever is made.
    """

    def __init__(self, log: MemoryLog, workspaces: Workspaces, assumptions: Assumptions) -> None:
        super().__init__()
        self.log, self.workspaces, self.assumptions = log, workspaces, assumptions
        self.places: dict[int, str] = {}
        self.place, self.forced = CPU, ""

    def place_of(self, tensor: torch.Tensor) -> str:
        """Return where a tensor would be."""
        with torch._C.DisableTorchFunction():
            if not tensor.is_meta:
                return CPU
            return self.places.get(tensor.untyped_storage()._cdata, META)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():
            return self._dispatch(func, args, kwargs or {})

    def _dispatch(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        inputs = [*tensors_in(args), *tensors_in(kwargs)]
        if not any(one.is_meta for one in inputs) and not self._is_large(args, kwargs):
            made = func(*args, **kwargs)
            self._note(made, self.forced or self.place, func)
            return made
        place = self.forced or self._common_place(inputs)
        if (assumed := DATA_DEPENDENT.get(func)) is not None:
            made = assumed(self.assumptions, func, args, kwargs)
        else:
            made = self._run(func, args, kwargs)
        self._note(made, place, func, args)
        return made

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        args, kwargs = on_meta(args), on_meta(kwargs)
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("meta")
        if kwargs.get("generator") is not None:
            kwargs["generator"] = None
        try:
            return func(*args, **kwargs)
        except NotImplementedError:
            if func._schema.is_mutable:  # only changes values
                return args[0]
            raise

    def _common_place(self, inputs: Sequence[torch.Tensor]) -> str:
        places = {self.place_of(one) for one in inputs if one.is_meta}
        return next((place for place in (CUDA, CPU, META) if place in places), self.place)

    def _is_large(self, args: Any, kwargs: dict[str, Any]) -> bool:
        """Return whether a tensor is made of a size given by numbers, too large to be made for real."""
        if "device" not in kwargs or not args or not isinstance(args[0], (list, tuple)):
            return False
        count = 1
        for size in args[0]:
            count *= size if isinstance(size, int) else 1
        return count > MAX_REAL

    def _note(self, made: Any, place: str, func: Any, args: Any = ()) -> None:
        """Log the storages that an operation made, and the workspace of its kernel."""
        new = [one for one in tensors_in(made) if one.is_meta and one.untyped_storage()._cdata not in self.places]
        operator = func._opname
        for one in new:
            self._add(one, place, operator)
        if place == CUDA:
            for size, stays in self.workspaces.of(func, args, made):
                number = self.log.add(size, operator)
                if not stays:
                    self.log.free(number)

    def _add(self, tensor: torch.Tensor, place: str, operator: str) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self.places:
            return
        self.places[key] = place
        if place == CUDA and size:
            weakref.finalize(storage, self._drop, key, self.log.add(size, operator)).atexit = False
        else:
            weakref.finalize(storage, self.places.pop, key, None).atexit = False

    def _drop(self, key: int, number: int) -> None:
        self.places.pop(key, None)
        self.log.free(number)


def on_meta(values: Any) -> Any:
    """Return arguments with real tensors replaced by ones without memory."""
    if isinstance(values, torch.Tensor):
        return values if values.is_meta or values.dim() == 0 else torch.empty_like(values, device="meta")
    if isinstance(values, (list, tuple)):
        return type(values)(on_meta(value) for value in values)
    return {name: on_meta(value) for name, value in values.items()} if isinstance(values, dict) else values


Place = Callable[[torch.Tensor], str]
