"""Storages of a program that runs on tensors without memory: when each is made and freed, and by which code."""

import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tb_memplugin.torch_fit.assumptions import Assumptions
from tb_memplugin.torch_fit.known_values import KnownValues, tensors_in
from tb_memplugin.torch_fit.operators import DATA_DEPENDENT, run_without_values, without_shapes
from tb_memplugin.torch_fit.saved_tensors import SavedTensors
from tb_memplugin.torch_fit.workspaces import Workspaces

# Code that is not the program's: of this package, and what PyTorch puts between a function and its interception.
SKIPPED = (
    str(Path(__file__).parent),
    "<eval_with_key>",  # a graph of torch.fx
    *(
        f"{Path(torch.__file__).parent}/{part}"
        for part in ("_dynamo/", "_functorch/", "_inductor/", "_compile.py", "overrides.py", "_ops.py", "utils/_")
    ),
)
AUTOGRAD = "torch::autograd::generated::"
WORKSPACE_FRAME = "at::cuda::setWorkspaceForHandle"  # where PyTorch allocates a workspace that stays
CUDA, CPU, META = "cuda", "cpu", "meta"
MAX_REAL = 1 << 20  # elements: smaller tensors of the CPU are real, so that values such as step counts are
MAX_FRAMES = 200
ALLOCATED = "empty_strided"  # the operator of a buffer that compiled code fills
SPARSE = "What operations on sparse tensors take for a while is left out, and repeated indices are not merged"
OWN_USES = 2  # references to a storage that one tensor has: its own, and that of the interception

aten = torch.ops.aten
TracedFrame = tuple[str, str, int]  # function, file, line
BufferOrigin = tuple[str, list[TracedFrame]]  # of compiled code: the operator, and the stack, innermost first


class StorageEvent(NamedTuple):
    """An allocation on a stream, or with `size` -1 a free; `number` tells allocations apart.

    `stack` is an index of `stacks`.
    """

    number: int
    size: int
    stack: int
    stream: int = 0


@dataclass
class MemoryLog:
    """Allocations and frees of a GPU in program order, with their stacks, innermost frame first."""

    events: list[StorageEvent] = field(default_factory=list)
    stacks: dict[tuple[int, ...], int] = field(default_factory=dict)
    frames: dict[TracedFrame, int] = field(default_factory=dict)
    sources: dict[tuple[str, int], BufferOrigin] = field(default_factory=dict)  # by lines of compiled code
    parameters: set[int] = field(default_factory=set)  # the numbers of allocations that became parameters of modules
    allocated: int = 0  # how many allocations there were
    stream: int = 0  # the current one
    is_closed: bool = False  # what is freed after the traced block is not logged

    def add(self, size: int, operator: str, *inner: str) -> int:
        """Add an allocation with the current stack, below which are `inner` functions, and return its number."""
        self.allocated += 1
        self.events.append(StorageEvent(self.allocated, size, self.current_stack(operator, *inner), self.stream))
        return self.allocated

    def free(self, number: int, *inner: str) -> None:
        """Add the free of an allocation; `inner` are functions below the current stack."""
        if self.is_closed:
            return
        self.events.append(StorageEvent(number, -1, self.current_stack("", *inner)))

    def has_backward(self) -> bool:
        """Return whether something was allocated in a backward pass."""
        return any(name.startswith(AUTOGRAD) for name, _, _ in self.frames)

    def current_stack(self, operator: str, *inner: str) -> int:
        """Return the number of the current stack. An operator and its node of autograd become frames as in C++."""
        found = [self._frame(name, "", 0) for name in inner]
        found += [self._frame(f"at::_ops::{operator}::call", "", 0)] if operator else []
        node = torch._C._current_autograd_node()
        if node is not None:
            found.append(self._frame(f"{AUTOGRAD}{node.name()}::apply", "", 0))
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and len(found) < MAX_FRAMES:
            code = frame.f_code
            if (source := self.sources.get((code.co_filename, frame.f_lineno))) is not None:
                if operator == ALLOCATED and source[0]:
                    found[len(inner)] = self._frame(f"at::_ops::{source[0]}::call", "", 0)
                found += [self._frame(*one) for one in source[1]]
            elif not code.co_filename.startswith(SKIPPED):
                found.append(self._frame(code.co_name, code.co_filename, frame.f_lineno))
            frame = frame.f_back
        return self.stacks.setdefault(tuple(found), len(self.stacks))

    def _frame(self, name: str, file: str, line: int) -> int:
        return self.frames.setdefault((name, file, line), len(self.frames))


def asks_for_shapes() -> bool:
    """Return whether PyTorch itself runs an operation on fake tensors, as DTensor does to learn a result's shape."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


class StorageTracker(TorchDispatchMode):  # type: ignore[misc]
    """Runs each operation on tensors of the device `meta`, which have no memory, and logs the storages of the GPU.

    Each storage has a place: the GPU, the CPU, or `meta` where the program asked for that. `place` is where an
    operation without tensors makes them; `forced` overrides the place of whatever is made.
    """

    def __init__(self, log: MemoryLog, workspaces: Workspaces, assumptions: Assumptions) -> None:
        super().__init__()
        self.log, self.workspaces, self.assumptions = log, workspaces, assumptions
        self.places: dict[int, str] = {}  # by the address of the storage
        self.numbers: dict[int, int] = {}  # of allocations, likewise
        self.values, self.saved = KnownValues(), SavedTensors()
        self.place, self.forced = CPU, ""

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let functions be compiled while this mode is active."""
        return True

    def place_of(self, tensor: torch.Tensor) -> str:
        """Return where a tensor would be."""
        with torch._C.DisableTorchFunction():
            tensor = getattr(tensor, "_local_tensor", tensor)  # of a DTensor
            if not tensor.is_meta:
                return CPU
            return self.places.get(tensor.untyped_storage()._cdata, META)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if asks_for_shapes():
            return func(*args, **(kwargs or {}))
        if any(one.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for one in types):
            return NotImplemented  # a DTensor, which calls operations on its part
        with torch._C.DisableTorchFunction():
            return self._dispatch(func, args, kwargs or {})

    def _dispatch(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        self.saved.follow(func)
        inputs = [*tensors_in(args), *tensors_in(kwargs)]
        device = kwargs.get("device")
        is_on_meta = device is not None and device.type == META
        is_on_gpu = device is not None and device.type == CUDA  # DTensor calls operations without functions around them
        if not (is_on_meta or is_on_gpu or any(one.is_meta for one in inputs) or self._is_large(args, kwargs)):
            made = func(*args, **kwargs)
            self._note(made, self.forced or self.place, func._opname)
            return made
        if func._can_decompose() and not torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CPU"):
            with self:
                return func.decompose(*args, **kwargs)
        place = self.forced or (CUDA if is_on_gpu else self._common_place(inputs, is_on_meta))
        if (assumed := DATA_DEPENDENT.get(func)) is not None:
            made = assumed(self.assumptions, self.values, func, args, kwargs)
        else:
            made = self._run(func, args, kwargs)
        if place == CUDA and func is aten.add.Tensor and torch._C._current_graph_task_id() >= 0:
            self._reuse(inputs, made)
        self._note(made, place, func._opname)
        self.values.follow(func, args, kwargs, inputs, made)
        if place == CUDA:
            self._note_workspaces(func, args, kwargs)
            self.saved.expect(made)
        return made

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        args, kwargs = on_meta(args), on_meta(kwargs)
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("meta")
        if kwargs.get("generator") is not None:
            kwargs["generator"] = None
        if func.namespace == "c10d":
            return _collective(func, args)
        try:
            return run_without_values(self.assumptions, func, args, kwargs)
        except NotImplementedError:
            if func._schema.is_mutable:  # only changes values
                return args[0]
            raise without_shapes(func) from None

    def _common_place(self, inputs: Sequence[torch.Tensor], is_on_meta: bool) -> str:
        if is_on_meta and not inputs:
            return CUDA  # PyTorch's C++ code makes a tensor beside others, such as a bucket of DDP
        places = {self.place_of(one) for one in inputs if one.is_meta}
        return next((place for place in (CUDA, CPU, META) if place in places), self.place)

    def _is_large(self, args: Any, kwargs: dict[str, Any]) -> bool:
        """Return whether a tensor is made of a size given by numbers, too large to be made for real."""
        if "device" not in kwargs or not args or not isinstance(args[0], (list, tuple)):
            return False
        return prod(size for size in args[0] if isinstance(size, int)) > MAX_REAL

    def _note(self, made: Any, place: str, operator: str) -> None:
        """Log the storages that an operation made."""
        if getattr(made, "layout", None) is torch.sparse_coo:
            self.assumptions.note(SPARSE)
        for one in tensors_in(made):
            if one.is_meta and (key := (storage := one.untyped_storage())._cdata) not in self.places:
                if place == CUDA and (size := storage.nbytes()):
                    self.numbers[key] = self.log.add(size, operator)
                self._follow(storage, place)

    def _note_workspaces(self, func: Any, args: Any, kwargs: Any) -> None:
        """Log what the kernel of an operation allocates besides its outputs."""
        packet, operator = func._overloadpacket, func._opname
        for size in self.workspaces.staying(packet):
            self.log.add(size, operator, WORKSPACE_FRAME)
        for number in [self.log.add(size, operator) for size in self.workspaces.temporary(packet, args, kwargs)]:
            self.log.free(number)

    def _reuse(self, inputs: Sequence[torch.Tensor], made: torch.Tensor) -> None:
        """Give a sum of gradients the memory of one of them, as autograd does if nothing else uses that.

        Autograd adds in place, except while operations are intercepted.
        """
        for one in inputs:
            storage = one.untyped_storage()
            alone = torch._C._storage_Use_Count(storage._cdata) <= OWN_USES and one.shape == made.shape
            if alone and one.dtype == made.dtype and storage._cdata in self.numbers:
                self.numbers[made.untyped_storage()._cdata] = self.numbers.pop(storage._cdata)
                self._follow(made.untyped_storage(), CUDA)
                return

    def note_parameter(self, tensor: torch.Tensor) -> None:
        """Log that a tensor became a parameter of a module; its stack shows only that a module made it."""
        with torch._C.DisableTorchFunction():
            storage = getattr(tensor, "_local_tensor", tensor).untyped_storage()
        if (number := self.numbers.get(storage._cdata)) is not None:
            self.log.parameters.add(number)

    def resize(self, storage: Any, size: int) -> None:
        """Log that a storage was given memory of another size; sharded parameters have none while they are not used."""
        key = storage._cdata
        if self.places.get(key) != CUDA:
            return
        if (number := self.numbers.pop(key, None)) is not None:
            self.log.free(number)
        if size:
            self.numbers[key] = self.log.add(size, "resize_")

    def _follow(self, storage: Any, place: str) -> None:
        self.places[storage._cdata] = place
        weakref.finalize(storage, self._drop, storage._cdata).atexit = False

    def _drop(self, key: int) -> None:
        self.places.pop(key, None)
        self.values.forget(key)
        functions = self.saved.end(key)
        if (number := self.numbers.pop(key, None)) is not None:
            self.log.free(number, *functions)


def _collective(func: Any, args: Any) -> Any:
    """Return what a collective does: mostly its first argument, and what to wait for."""
    from torch._C._distributed_c10d import _create_work_from_future

    work = _create_work_from_future(completed(list(tensors_in(args[0])))).boxed()
    return (args[0], work) if len(func._schema.returns) > 1 else work


def completed(value: Any) -> Any:
    """Return the future of a collective that has ended, with what it received."""
    future = torch.futures.Future()
    future.set_result(value)
    return future


def on_meta(values: Any) -> Any:
    """Return arguments with real tensors replaced by ones without memory."""
    if isinstance(values, torch.Tensor):
        return values if values.is_meta or values.dim() == 0 else torch.empty_like(values, device="meta")
    if isinstance(values, (list, tuple)):
        return type(values)(on_meta(value) for value in values)
    return {name: on_meta(value) for name, value in values.items()} if isinstance(values, dict) else values
