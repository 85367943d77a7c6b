"""A GPU that is not there: tensors say that they are on `cuda`, and functions act as on CUDA, without memory."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch._dynamo  # optimizers import it when first used; it must find torch.cuda unchanged
import torch.nn.functional
from torch._subclasses import fake_tensor
from torch.overrides import TorchFunctionMode

from tb_memplugin.torch_fit.as_on_cuda import SUBSTITUTES, AutocastCache, autocast_arguments
from tb_memplugin.torch_fit.compiled import compiling, know_functions
from tb_memplugin.torch_fit.operators import triton_kernels
from tb_memplugin.torch_fit.storages import CPU, CUDA, META, StorageTracker, asks_for_shapes
from tb_memplugin.torch_fit.streams import CudaFunction, stream_functions

CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


class PretendedGpu(TorchFunctionMode):  # type: ignore[misc]
    """Intercepts PyTorch's functions: devices become places of storages, autocast and kernels those of CUDA."""

    def __init__(self, tracker: StorageTracker, gpu: torch.device) -> None:
        super().__init__()
        self.gpu = gpu
        self.tracker, self.cache, self.is_handling = tracker, AutocastCache(), False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if asks_for_shapes():
            return func(*args, **kwargs)
        before, self.is_handling = self.is_handling, True
        try:
            name = func.__name__
            if name == "__get__" and (getter := GETTERS.get(func.__self__.__name__)) is not None:
                return getter(self, args[0])
            if (handler := HANDLERS.get(name)) is not None:
                return handler(self, func, args, kwargs)
            return self.call(func, args, kwargs)
        finally:
            self.is_handling = before

    def call(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Call a function as CUDA would run it."""
        if torch.is_autocast_enabled("cuda"):
            args, kwargs = autocast_arguments(self.cache, func.__name__, args, kwargs)
        substitute = SUBSTITUTES.get(func.__name__)
        if substitute is not None and any(self.is_on_gpu(one) for one in args):
            return substitute(self, func, args, kwargs)
        if "device" not in kwargs:
            return func(*args, **kwargs)
        with self.placing(kwargs["device"]) as device:
            return func(*args, **{**kwargs, "device": device})

    @contextmanager
    def placing(self, device: Any) -> Iterator[Any]:
        """Have operations make tensors on a device. Yields the device to pass to them."""
        if device is None:
            yield None
            return
        kind = torch.device(device).type
        tracker = self.tracker
        before = tracker.place, tracker.forced
        tracker.place = tracker.forced = kind
        try:
            yield torch.device(CPU if kind == CPU else META)
        finally:
            tracker.place, tracker.forced = before

    def is_on_gpu(self, value: Any) -> bool:
        """Return whether a value is a tensor on the GPU."""
        return isinstance(value, torch.Tensor) and self.tracker.place_of(value) == CUDA

    @contextmanager
    def active(self) -> Iterator[None]:
        """Have functions intercepted in a block, also in code that is called while one is handled."""
        if not self.is_handling:
            yield
            return
        self.is_handling = False
        try:
            with self:
                yield
        finally:
            self.is_handling = True


def _to(mode: PretendedGpu, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Convert a tensor, as Tensor.to does."""
    tensor, rest = args[0], args[1:]
    copy = kwargs.get("copy", False)
    kwargs = {key: value for key, value in kwargs.items() if key not in ("copy", "non_blocking")}
    other = rest[0] if rest and isinstance(rest[0], torch.Tensor) else kwargs.pop("other", None)
    if other is not None:
        return _move(mode, tensor, _device(mode, other), other.dtype, copy)
    found = [one for one in (*rest, *kwargs.values()) if one is not None and not isinstance(one, bool)]
    dtype = next((one for one in found if isinstance(one, torch.dtype)), None)
    layout = next((one for one in found if isinstance(one, torch.memory_format)), None)
    device = next((one for one in found if isinstance(one, (str, int, torch.device))), None)
    return _move(mode, tensor, None if device is None else torch.device(device), dtype, copy, layout)


def _move(
    mode: PretendedGpu, tensor: Any, device: Any, dtype: Any = None, copy: bool = False, layout: Any = None
) -> Any:
    place = mode.tracker.place_of(tensor)
    wanted = place if device is None else device.type
    options = {} if layout is None else {"memory_format": layout}
    if wanted == place:
        return tensor.to(dtype=dtype or tensor.dtype, copy=copy, **options)
    with mode.placing(wanted):
        return tensor.to(device=META, dtype=dtype or tensor.dtype, copy=True, **options)


def _device(mode: PretendedGpu, tensor: Any) -> torch.device:
    place = mode.tracker.place_of(tensor)
    return mode.gpu if place == CUDA else torch.device(place)


def _numpy(mode: PretendedGpu, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return zeros of the same shape where a tensor has no values."""
    tensor = args[0].detach()
    values = mode.tracker.values.of(tensor)
    return func(torch.zeros(tensor.shape, dtype=tensor.dtype) if values is None else values, *args[1:], **kwargs)


def _tensor(mode: PretendedGpu, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Make a tensor of given values on the CPU, and move it: on `meta`, it would lose them."""
    options = {name: value for name, value in kwargs.items() if name not in ("device", "requires_grad", "pin_memory")}
    if kwargs.get("device") is None or any(isinstance(one, torch.Tensor) for one in (*args, kwargs.get("data"))):
        return mode.call(func, args, kwargs)
    made = _move(mode, func(*args, **options), torch.device(kwargs["device"]))
    return made.requires_grad_() if kwargs.get("requires_grad") else made


def _cross_entropy(mode: PretendedGpu, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute in the type of the logits: only the second half is in autocast's list."""
    smoothing = kwargs.get("label_smoothing", 0.0)
    if not torch.is_autocast_enabled("cuda") or smoothing or args[1].is_floating_point():
        return mode.call(func, args, kwargs)
    dim = 0 if args[0].dim() == 1 else 1
    logs = torch.log_softmax(args[0], dim, dtype=args[0].dtype)
    names = ("weight", "reduction", "ignore_index")
    rest = {name: kwargs[name] for name in names if name in kwargs} | dict(zip(names, args[2:5], strict=False))
    return mode.call(torch._C._nn.nll_loss_nd, (logs, args[1]), rest)


def _recurrent(mode: PretendedGpu, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    text = "Recurrent layers are traced step by step; cuDNN keeps other values for the backward pass"
    mode.tracker.assumptions.note(text)
    return mode.call(func, args, kwargs)


def _record_stream(mode: PretendedGpu, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    mode.tracker.assumptions.note("Memory that a second stream uses counts as free once its tensor is gone")


HANDLERS: dict[str, CudaFunction] = {
    "to": _to, "numpy": _numpy, "tolist": _numpy,
    "cross_entropy_loss": _cross_entropy, "tensor": _tensor, "as_tensor": _tensor,
    "cuda": lambda mode, func, args, kwargs: _move(mode, args[0], mode.gpu, layout=kwargs.get("memory_format")),
    "cpu": lambda mode, func, args, kwargs: _move(mode, args[0], torch.device(CPU), layout=kwargs.get("memory_format")),
    "pin_memory": lambda mode, func, args, kwargs: args[0],
    "is_pinned": lambda mode, func, args, kwargs: False,
    "get_device": lambda mode, func, args, kwargs: mode.gpu.index if mode.is_on_gpu(args[0]) else -1,
    "record_stream": _record_stream,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
}  # fmt: skip
GETTERS: dict[str, CudaFunction] = {
    "device": _device,
    "is_cuda": lambda mode, tensor: mode.is_on_gpu(tensor),
    "is_cpu": lambda mode, tensor: mode.tracker.place_of(tensor) == CPU,
    "is_meta": lambda mode, tensor: mode.tracker.place_of(tensor) == META,
}


def _never(*args: object) -> bool:
    return False


_never = getattr(torch._dynamo, "dont_skip_tracing", lambda function: function)(_never)  # which Dynamo reads


def _nothing(*args: object, **kwargs: object) -> None:
    pass


def cuda_functions(
    mode: PretendedGpu, count: int, name: str, capability: tuple[int, int], memory: int, multiprocessors: int
) -> dict[str, Any]:
    """Return functions of torch.cuda as on a host with so many GPUs."""
    properties = SimpleNamespace(
        name=name, major=capability[0], minor=capability[1], total_memory=memory,
        multi_processor_count=multiprocessors, warp_size=32, max_threads_per_multi_processor=2048,
    )  # fmt: skip
    state = torch.zeros(16, dtype=torch.uint8)
    values: dict[str, Any] = {
        "is_available": True, "is_initialized": True, "device_count": count, "get_device_name": name,
        "current_device": mode.gpu.index, "current_device_index": mode.gpu.index,
        "current_accelerator": torch.device(CUDA),
        "get_device_capability": capability, "get_device_properties": properties, "is_bf16_supported": True,
        "is_tf32_supported": True, "get_arch_list": [f"sm_{capability[0]}{capability[1]}"], "memory_summary": "",
        "mem_get_info": (memory, memory), "get_memory_info": (memory, memory),
        "current_device_idx": mode.gpu.index, "memory_stats": {}, "is_current_stream_capturing": False,
        "_snapshot": {"segments": [], "device_traces": []},
        "initial_seed": 0, "get_rng_state": state, "get_rng_state_all": [state],
        "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
    }  # fmt: skip
    functions: dict[str, Any] = {key: (lambda *args, _value=value, **kwargs: _value) for key, value in values.items()}
    quiet = (
        *("init", "_lazy_init", "synchronize", "empty_cache", "ipc_collect", "manual_seed", "manual_seed_all"),
        *("set_device", "set_device_index", "set_device_idx", "set_rng_state", "set_rng_state_all", "seed", "seed_all"),
        *("reset_peak_memory_stats", "reset_accumulated_memory_stats", "set_per_process_memory_fraction", "_lazy_call"),
        *("_record_memory_history", "_dump_snapshot"),  # a trace is a snapshot itself
    )
    return functions | dict.fromkeys(quiet, _nothing) | stream_functions(mode.tracker.log, mode.gpu)


@contextmanager
def pretended_gpu(mode: PretendedGpu, functions: dict[str, Any]) -> Iterator[None]:
    """Run a block as if there were a GPU."""
    know_functions()
    with ExitStack() as stack:
        if hasattr(torch._C, "_ensureCUDADeviceGuardSet"):  # newer than PyTorch 2.6
            stack.enter_context(patch.object(fake_tensor.FakeTensorMode, "avoid_device_init", True))
            stack.enter_context(patch.object(fake_tensor, "init_gpu_context", _nothing))
            torch._C._ensureCUDADeviceGuardSet()  # fake tensors of DTensor and of the compiler need no driver
        for name, value in functions.items():
            for module in (torch.cuda, torch.cuda.memory, torch.accelerator):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, value))
        for name in ("Stream", "Event"):
            stack.enter_context(patch.object(torch, name, functions[name]))
        stack.enter_context(patch.object(torch._C, "_get_accelerator", functions["current_accelerator"]))
        for module in (torch, torch.nn.functional, torch.functional, torch._tensor, torch.nn.init, torch.autograd):
            for name in CHECKS:
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, _never))
        stack.enter_context(patch.object(torch, "Generator", _Generator))
        for owner, name, change in (
            (torch._tensor_str, "_str", _str),
            (torch, "clear_autocast_cache", _clear_autocast_cache),
            (torch.nn.Parameter, "__new__", _make_parameter),
            (torch.UntypedStorage, "resize_", _resize),
            (torch._C._autograd, "_push_saved_tensors_default_hooks", _push_hooks),
            (torch._C._autograd, "_pop_saved_tensors_default_hooks", _pop_hooks),
            (torch.autograd.function.FunctionCtx, "save_for_backward", _save_for_backward),
        ):
            stack.enter_context(patch.object(owner, name, _changed(mode, getattr(owner, name), change)))
        stack.enter_context(triton_kernels(mode.tracker.assumptions))
        stack.enter_context(compiling(mode, functions))
        stack.enter_context(mode.tracker)
        stack.enter_context(mode)
        yield


class _Generator(torch._C.Generator):  # type: ignore[misc]
    """A generator of random numbers on any device."""

    def __new__(cls, device: object = CPU) -> Any:
        return super().__new__(cls, CPU)


def _changed(mode: PretendedGpu, function: CudaFunction, change: CudaFunction) -> CudaFunction:
    """Return what takes the place of a function, as which a change is called with it."""

    def call(*args: Any, **options: Any) -> Any:
        return change(mode, function, *args, **options)

    return call


def _make_parameter(
    mode: PretendedGpu, make: CudaFunction, cls: Any, data: Any = None, requires_grad: bool = True
) -> Any:
    """Make a parameter that keeps its shape only, so that it can move between devices."""
    with torch._C.DisableTorchFunction():
        if data is not None and not data.is_meta:
            with mode.placing(CPU):
                data = torch.empty_like(data, device=META)
        elif data is not None:
            mode.tracker.note_parameter(data)
        return make(cls, data, requires_grad)


def _str(mode: PretendedGpu, of_values: CudaFunction, tensor: Any, **options: object) -> str:
    with torch._C.DisableTorchFunction():
        if not tensor.is_meta:
            return str(of_values(tensor, **options))
    device = f"device='{_device(mode, tensor)}'"
    return f"tensor(..., {device}, size={tuple(tensor.shape)}, dtype={tensor.dtype})"


def _resize(mode: PretendedGpu, resize: CudaFunction, storage: Any, size: int) -> Any:
    if not asks_for_shapes():
        mode.tracker.resize(storage, size)
    return resize(storage, size)


def _push_hooks(mode: PretendedGpu, push: CudaFunction, *hooks: CudaFunction) -> None:
    """Begin hooks on saved tensors, and intercept the functions that these call."""

    def intercepted(hook: CudaFunction) -> CudaFunction:
        def call(value: Any) -> Any:
            with mode.active():
                return hook(value)

        return call

    push(*map(intercepted, hooks))
    mode.tracker.saved.hooks += 1


def _pop_hooks(mode: PretendedGpu, pop: CudaFunction) -> None:
    pop()
    mode.tracker.saved.hooks -= 1


def _save_for_backward(mode: PretendedGpu, save: CudaFunction, context: Any, *tensors: Any) -> None:
    mode.tracker.saved.add_by_hand(tensors)
    save(context, *tensors)


def _clear_autocast_cache(mode: PretendedGpu, clear: CudaFunction) -> None:
    with mode.tracker.saved.ending_elsewhere():
        mode.cache.casts.clear()
