"""`torch.compile` in a trace: PyTorch's own compiler runs to the end, but no kernel is built and none is launched.

Dynamo and AOTAutograd, which decides what the backward pass recomputes, see tensors on the device `meta`, as autograd
needs a driver for those of a GPU. Inductor sees the same graphs on the GPU. What it writes is a Python program that
allocates, launches and frees. It runs in the trace with launches that do nothing, so its memory is the compiler's plan.
"""

import gc
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from copy import copy
from functools import partial, wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch._dynamo import trace_rules
from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils import _python_dispatch
from torch.utils._pytree import tree_map

from tb_memplugin.torch_fit.as_on_cuda import SUBSTITUTES, AutocastCache, autocast_arguments
from tb_memplugin.torch_fit.known_values import tensors_in
from tb_memplugin.torch_fit.storages import CPU, CUDA, META, BufferOrigin
from tb_memplugin.torch_fit.streams import CudaFunction

COMPILED = (
    "torch.compile: memory as planned by PyTorch's compiler. It does not time kernels here, so it pads no matrix, and"
    " chooses none of the variants of max-autotune"
)
NO_GRAPHS = "CUDA graphs are left out; they keep the memory of compiled code for themselves"
NOT_COMPILED = "torch.compile is left out: the step is traced as eager code, which needs more"
NOT_PLANNED = "A compiled part is traced operation by operation, which needs more, as PyTorch's compiler failed: {}"
SETTINGS = {
    "fx_graph_cache": False, "fx_graph_remote_cache": False, "compile_threads": 1, "triton.cudagraphs": False,
    "max_autotune": False, "max_autotune_pointwise": False, "max_autotune_gemm": False,
    "coordinate_descent_tuning": False,
    "shape_padding": False, "joint_graph_constant_folding": False,  # these two run kernels
}  # fmt: skip
BUFFER = re.compile(r"\s*(buf\d+) = |.*\bout=(buf\d+)\)")
SOURCE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def know_functions() -> None:
    """Have Dynamo look at PyTorch's functions while they are its own, and not at this package's."""
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    trace_rules.add("tb_memplugin")
    TorchInGraphFunctionVariable._get_handlers()
    trace_rules.get_torch_obj_rule_map()


@contextmanager
def compiling(mode: Any, functions: dict[str, Any]) -> Iterator[None]:
    """Have torch.compile in a block compile for the GPU of `mode`, whose functions of torch.cuda are given."""
    compile, compiler = torch.compile, GpuCompiler(mode, functions)

    @wraps(compile)
    def prepared(*args: Any, **options: Any) -> Any:
        if compiler.prepare():
            return compile(*args, **options)
        mode.tracker.assumptions.note(NOT_COMPILED)
        return args[0] if args and args[0] is not None else lambda function: function

    keep = patch.object(trace_rules, "clear_lru_cache", lambda: None)  # what `know_functions` learned
    with keep, compiler.patches, patch.object(torch, "compile", prepared):
        if "torch._inductor.compile_fx" in sys.modules:
            compiler.prepare()  # for what was compiled before
        yield


class GpuCompiler:
    """PyTorch's compiler, changed so that it needs no GPU. The changes end with the context `patches`."""

    def __init__(self, mode: Any, functions: dict[str, Any]) -> None:
        self.mode, self.functions = mode, functions
        self.patches, self.is_prepared, self.is_on_gpu = ExitStack(), False, False
        self.is_possible = hasattr(torch._C, "_ensureCUDADeviceGuardSet")  # newer than PyTorch 2.6

    def prepare(self) -> bool:
        """Change the compiler, at its first use, as its import takes seconds. False for another PyTorch's compiler."""
        if self.is_possible and not self.is_prepared:
            self.is_prepared = True
            try:
                with suspended():
                    self._prepare()
            except (AttributeError, ImportError):  # of a part that has another name there
                self.patches.close()
                self.is_possible = False
        return self.is_possible

    def _prepare(self) -> None:
        from torch._dynamo import config as dynamo_config
        from torch._dynamo import convert_frame, device_interface, guards
        from torch._dynamo.variables.optimizer import OptimizerVariable
        from torch._dynamo.variables.tensor import TensorVariable
        from torch._functorch import config as functorch_config
        from torch._inductor import async_compile, compile_fx, config, graph
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.utils import _triton

        folder = Path(self.patches.enter_context(tempfile.TemporaryDirectory())) / "torch"
        interface = _without_driver(device_interface.CudaInterface, self.functions)
        _forget()
        self.patches.callback(_forget)
        for context in (
            _composite_operators(),
            config.patch(SETTINGS),
            functorch_config.patch("enable_autograd_cache", False),
            dynamo_config.patch("optimize_ddp", False),  # which splits graphs where DDP's buckets end
            patch.dict(os.environ, {"TORCHINDUCTOR_CACHE_DIR": str(folder)}),
            patch.dict(device_interface.device_interfaces, {CUDA: interface}),
            patch.object(guards.GuardBuilder, "TORCH_FUNCTION_STATE", lambda builder, guard: None),
            patch.object(_triton, "triton_hash_with_backend", lambda: "none"),
            *(
                patch.object(async_compile.AsyncCompile, language, lambda *args, **options: _Kernel(self._forget))
                for language in ("triton", "cpp_pybinding")
            ),
            patch.object(torch._C._dynamo.guards, "_empty_strided_cuda", self._empty, create=True),
            patch.object(torch._C, "_cuda_getCurrentRawStream", lambda device: 0, create=True),
            patch.object(torch.cuda, "_DeviceGuard", lambda device: nullcontext(), create=True),
            *(
                patch.object(owner, name, _around(getattr(owner, name), change))
                for owner, name, change in (
                    (convert_frame.ConvertFrameAssert, "__call__", self._without_interception),
                    (FakeTensorMode, "__torch_dispatch__", self._make_on_meta),
                    (TensorVariable, "__init__", self._say_cuda),
                    (OptimizerVariable, "call_method", self._start_optimizer),
                    (graph.GraphLowering, "compile_to_module", self._learn_sources),
                    (compile_fx, "compile_fx", self._compile),
                    (compile_fx, "_recursive_joint_graph_passes", self._improve),
                )
            ),
        ):
            self.patches.enter_context(context)

    def _without_interception(self, convert: CudaFunction, *args: Any, **options: Any) -> Any:
        with suspended():
            return convert(*args, **options)

    def _with_interception(self, function: CudaFunction, *args: Any, **options: Any) -> Any:
        with self.mode.tracker, self.mode:
            return function(*args, **options)

    def _start_optimizer(self, call: CudaFunction, variable: Any, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Have Dynamo, which makes the state of an optimizer when it reads its step, do so as the program would."""
        if name != "_init_group":
            return call(variable, tx, name, args, kwargs)
        kind = type(variable.value)
        with patch.object(kind, name, _around(getattr(kind, name), self._with_interception)):
            return call(variable, tx, name, args, kwargs)

    def _make_on_meta(
        self, dispatch: CudaFunction, fake: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = args, kwargs or {}
        return dispatch(fake, func, types, *(given if self.is_on_gpu else tree_map(_on_meta, given)))

    def _say_cuda(self, make: CudaFunction, variable: Any, *args: Any, device: Any = None, **options: Any) -> None:
        """Tell a program that Dynamo reads that its tensors are on the GPU."""
        make(variable, *args, device=self._moved(device), **options)

    def _moved(self, value: Any) -> Any:
        return self.mode.gpu if isinstance(value, torch.device) and value.type == META else value

    def _compile(
        self, compile_fx: CudaFunction, graph: Any, inputs: Any, *args: Any, config_patches: Any = None, **options: Any
    ) -> Any:
        """Compile a graph of PyTorch's functions, which run in it as on CUDA."""
        from torch._inductor import config

        wanted = config_patches or {}
        self.mode.tracker.assumptions.note(COMPILED)
        if wanted.get("triton.cudagraphs"):
            self.mode.tracker.assumptions.note(NO_GRAPHS)
        eager = torch.fx.GraphModule(graph, copy(graph.graph))
        for node in graph.graph.nodes:
            if node.op == "call_method" or (node.op == "call_function" and _is_intercepted(node.target)):
                node.op, node.target = "call_function", self._as_on_cuda(node.target)
        graph.recompile()
        options["inner_compile"] = partial(self._plan, options.get("inner_compile"))
        with (
            suspended(),
            _constants(),
            config.patch({name: value for name, value in wanted.items() if name not in SETTINGS}),
        ):
            return self._or_eager(eager, partial(compile_fx, graph, inputs, *args, **options))

    def _or_eager(self, eager: Any, compile: CudaFunction) -> Any:
        """Return what a function compiles, or the graph itself where the compiler fails."""
        try:
            return compile()
        except Exception as error:  # of any kind, as the compiler has many parts
            self.mode.tracker.assumptions.note(NOT_PLANNED.format(type(error).__name__))
            return eager

    def _as_on_cuda(self, target: Any) -> CudaFunction:
        """Return a function or the method of a name as autocast and CUDA's kernels have it, for tensors on `meta`."""
        name = target if isinstance(target, str) else target.__name__

        def on_cuda(*args: Any, **kwargs: Any) -> Any:
            function = (lambda one, *rest, **more: getattr(one, name)(*rest, **more)) if target == name else target
            args, kwargs = tree_map(_on_meta, (args, kwargs))
            if torch.is_autocast_enabled(CUDA):
                args, kwargs = autocast_arguments(AutocastCache(), name, args, kwargs)
            if name in SUBSTITUTES:
                return SUBSTITUTES[name](self.mode, function, args, kwargs)
            return (torch.tensor if name == "tensor" else function)(*args, **kwargs)  # that of `_constants`

        on_cuda.__name__ = name
        on_cuda.is_on_cuda = True  # type: ignore[attr-defined]
        return on_cuda

    def _improve(self, passes: CudaFunction, graph: Any, *args: Any, **options: Any) -> Any:
        with self._on_gpu():
            self._move(graph, [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"])
            return passes(graph, *args, **options)

    def _plan(self, inner: CudaFunction | None, graph: Any, inputs: Any, **options: Any) -> Any:
        """Compile a graph of operators to a program that allocates as the compiler plans."""
        from torch._inductor import compile_fx

        gc.collect()  # Dynamo leaves cycles that keep tensors, which Python finds sooner or later

        def run(args: list[Any]) -> Any:
            return graph(*args)

        run._boxed_call = True  # type: ignore[attr-defined]
        with suspended(), self._on_gpu():
            moved = self._move(graph, inputs)
            return self._or_eager(run, partial(inner or compile_fx.compile_fx_inner, graph, moved, **options))

    def _move(self, graph: Any, inputs: Sequence[Any]) -> list[Any]:
        """Move a graph from `meta` to the GPU. Returns its inputs there."""
        from torch._guards import detect_fake_mode
        from torch.fx.passes.fake_tensor_prop import FakeTensorProp

        fake = detect_fake_mode(inputs)
        for node in graph.graph.nodes:
            node.args, node.kwargs = tree_map(self._moved, node.args), tree_map(self._moved, node.kwargs)

        def on_gpu(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.device.type != META:
                return value
            with fake:
                return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=self.mode.gpu)

        moved = [on_gpu(value) for value in inputs]
        if fake is not None:
            FakeTensorProp(graph, fake).propagate_dont_convert_inputs(*moved)
        return moved

    def _empty(self, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        made = torch.empty_strided(size, stride, dtype=dtype, device=CUDA)
        self._forget(made)
        return made

    def _forget(self, tensor: torch.Tensor) -> None:
        """Forget the values of a tensor that compiled code fills."""
        self.mode.tracker.values.forget(tensor.untyped_storage()._cdata)

    @contextmanager
    def _on_gpu(self) -> Iterator[None]:
        before, self.is_on_gpu = self.is_on_gpu, True
        try:
            with torch.no_grad():
                yield
        finally:
            self.is_on_gpu = before

    def _learn_sources(self, compile_to_module: CudaFunction, graph: Any) -> Any:
        """Compile a graph to a program, and keep for each of its lines where the buffer that it makes is from."""
        module = compile_to_module(graph)
        for number, line in enumerate(Path(module.__file__).read_text().splitlines(), 1):
            match = BUFFER.match(line)
            buffer = graph.name_to_buffer.get(match[1] or match[2]) if match else None
            self.mode.tracker.log.sources[module.__file__, number] = _source_of(buffer)
        return module


@contextmanager
def _constants() -> Iterator[None]:
    """Make tensors of given values on the CPU, and move them: made on `meta`, the compiler would not see them."""

    def moved(make: CudaFunction, *args: Any, device: Any = None, **options: Any) -> Any:
        if device is None or torch.device(device).type != META:
            return make(*args, device=device, **options)
        return make(*args, device=CPU, **options).to(META)

    with patch.object(torch, "tensor", _around(torch.tensor, moved)):
        yield


class _Kernel:
    """A kernel of Triton or C++, which is not built."""

    def __init__(self, forget: CudaFunction) -> None:
        self.forget = forget

    def run(self, *args: object, **options: object) -> None:
        """Launch it: it writes to tensors that exist."""
        for tensor in tensors_in(args):
            self.forget(tensor)

    __call__ = run


def _around(function: CudaFunction, change: CudaFunction) -> CudaFunction:
    @wraps(function)
    def changed(*args: Any, **options: Any) -> Any:
        return change(function, *args, **options)

    return changed


def _without_driver(interface: Any, functions: dict[str, Any]) -> Any:
    """Return what Inductor asks about a device, answered by the functions of the GPU that is not there."""
    answers = {name: staticmethod(function) for name, function in functions.items()}
    answers["is_triton_capable"] = staticmethod(lambda *args: True)
    answers["raise_if_triton_unavailable"] = staticmethod(lambda *args: None)
    return type("PretendedInterface", (interface,), {**answers, "Worker": type("Worker", (), answers)})


@contextmanager
def suspended() -> Iterator[None]:
    """Run a block without interception, as the compiler does not run the program but looks at it."""
    functions = [_pop_mode() for _ in _get_current_function_mode_stack()]
    try:
        with _python_dispatch._disable_current_modes():
            yield
    finally:
        for mode in reversed(functions):
            _push_mode(mode)


def _on_meta(value: Any) -> Any:
    return torch.device(META) if isinstance(value, torch.device) and value.type == CUDA else value


def _is_intercepted(target: Any) -> bool:
    module = getattr(target, "__module__", None) or ""
    return not (hasattr(target, "is_on_cuda") or module.startswith("torch.amp"))


def _source_of(buffer: Any) -> BufferOrigin:
    """Return the operator that a buffer of Inductor is the result of, and the program's stack, innermost first."""
    if buffer is None:
        return "", []
    nodes = [node for node in buffer.get_origins() if node.op == "call_function"]
    node = buffer.get_origin_node() or max(nodes, key=lambda one: one.meta.get("stack_trace") is not None, default=None)
    if node is None:
        return "", []
    lines = SOURCE.findall(node.meta.get("stack_trace") or "")
    target = node.target
    name = str(getattr(target, "_opname", None) or getattr(target, "__name__", target))
    return name, [(function, file, int(line)) for file, line, function in reversed(lines)]


@contextmanager
def _composite_operators() -> Iterator[None]:
    """Have operators that consist of others be traced as these also on `meta`, where some have functions of shapes."""
    from torch._decomp import global_decomposition_table

    key, kept = torch._C.DispatchKey.Meta, {}
    for operator in {one for table in global_decomposition_table.values() for one in table}:
        if isinstance(operator, torch._ops.OpOverload) and key in operator.py_kernels and operator._can_decompose():
            kept[operator] = operator.py_kernels.pop(key)
            operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for operator, kernel in kept.items():
            operator.py_kernels[key] = kernel
            operator._dispatch_cache.clear()


def _forget() -> None:
    """Forget which GPU there is, and what was compiled for it."""
    from torch._dynamo import device_interface
    from torch.utils import _triton

    torch._dynamo.reset()
    device_interface.caching_worker_device_properties.pop(CUDA, None)
    for function in vars(_triton).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()
