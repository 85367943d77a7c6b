"""Calls of jitted functions in this process: large ones are not executed, and return zeros.

Knows JAX's internals. `jit`, functions compiled ahead of time and transfers to devices go through here.
"""

import importlib
import math
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.script.jits import SMALL, CalledJit, described, key_of
from tb_memplugin.fit.script.on_target import Lowerer, zero_array
from tb_memplugin.fit.step.changed_program import replaced

LARGE = 64 << 20  # bytes of arguments and results from which on a function is not executed
# Models that are initialized array by array would fill memory: after so many bytes of results, the limit is lower.
# On several fake devices, each execution takes milliseconds, and some megabytes.
EXECUTED, LITTLE = 256 << 20, 1 << 20
NAMES = {"_fun": "pmap"}  # functions that JAX names itself
NOTABLE = 1 << 20  # bytes beside a function that are worth a line
NEEDED = ("_pjit_call_impl_python", "_get_fastpath_data", "_resolve_and_lower", "convert_to_metaty")

# Called before a function is executed or not, with its arguments and the parameters of JAX's primitive.
Heard = Callable[[CalledJit, Sequence[Any], dict[str, Any]], None]


@dataclass
class Watcher:
    """Hears the calls of jitted functions, and executes the small ones."""

    lowerer: Lowerer
    heard: Heard
    assumed: Mapping[str, int] = field(default_factory=dict)  # whole numbers that functions return, by their names
    called: dict[Any, CalledJit] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)  # whole numbers of such functions, that were read
    _numbers: dict[int, tuple[Any, str]] = field(default_factory=dict)  # by ids, those that were not computed
    _executed_bytes: int = 0  # of all results that were computed
    _given_up: dict[int, Any] = field(default_factory=dict)  # weak references to donated arrays, by their ids

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Hear each call of a jitted function meanwhile. InputError for an unknown version of JAX."""
        pjit, mlir, dispatch, stages = (
            importlib.import_module(f"jax._src.{name}") for name in ("pjit", "interpreters.mlir", "dispatch", "stages")
        )
        array: Any = importlib.import_module("jax._src.array").ArrayImpl
        if missing := [name for name in NEEDED if not hasattr(pjit, name)]:
            import jax

            text = "write a function with `devices` in its place, or try jax 0.10 to 0.12"
            raise InputError(f"Calls cannot be watched in jax {jax.__version__}", missing[0], text)
        known: Any = pjit
        ahead = _Ahead(self.lowerer.platform, known.jit_p, stages.Traced.lower, stages.Lowered.compile)
        with ExitStack() as stack:
            for owner, name, value in (
                (known, "_pjit_call_impl_python", partial(self._call, known._pjit_call_impl_python)),
                (known, "_get_fastpath_data", lambda *_, **__: None),  # later calls would bypass Python
                (mlir.ModuleContext, "get_backend", lambda *_, **__: self.lowerer.devices[0].client),  # of callbacks
                (dispatch, "_batched_device_put_impl", partial(self._put, dispatch._batched_device_put_impl)),
                (array, "__index__", _method(partial(self._read, array.__index__))),
                (array, "__int__", _method(partial(self._read, array.__int__))),
                (stages.Traced, "lower", _method(ahead.lower)),
                (stages.Lowered, "compile", _method(ahead.compile)),
            ):
                stack.enter_context(replaced(owner, name, value))
            # Functions that were called before would bypass Python too, and a new `jax.jit(f)` of one that is gone.
            importlib.import_module("jax._src.lib")._jax.PjitFunctionCache.clear_all()
            for name in ("_cpp_pjit_cache_fun_only", "_cpp_pjit_cache_explicit_attributes"):
                if hasattr(known, name):
                    getattr(known, name).clear()
            yield

    def _call(self, execute: Any, *arguments: Any, **parameters: Any) -> Any:
        """Take the place of a call of a jitted function."""
        jaxpr, name = parameters["jaxpr"], NAMES.get(parameters["name"], parameters["name"])
        key = key_of(name, jaxpr)
        if key not in self.called:
            self.called[key] = described(name, jaxpr)
        jit = self.called[key]
        jit.calls += 1
        self.heard(jit, arguments, parameters)
        placed = (getattr(each, "sharding", None) for each in arguments)  # shapes may have none
        devices = max((len(each.device_set) for each in placed if each is not None), default=1)
        if not jit.has_kernel and not self._is_large(jit.bytes, devices):
            self._executed_bytes += jit.result_bytes * devices
            return execute(*arguments, **parameters)
        donated = [each for each, is_donated in zip(arguments, parameters["donated_invars"], strict=True) if is_donated]
        self._given_up.update((id(each), weakref.ref(each)) for each in donated)
        results = [*self.lowerer.zeros(arguments, parameters, self.assumed.get(jit.name, 1))]
        used = fullest([*(each for each in arguments if not any(each is one for one in donated)), *results])
        jit.needed_bytes = max(jit.needed_bytes, used + self.bytes_beside([*arguments, *results, *jaxpr.consts]))
        self._numbers.update((id(each), (weakref.ref(each), jit.name)) for each in results if not each.shape)
        return results, None, None, []

    def _read(self, index: Any, array: Any) -> int:
        """Take the place of the conversion of an array to a whole number, as for a shape."""
        found = int(index(array))
        reference, name = self._numbers.get(id(array), (None, ""))
        if reference is not None and reference() is array:
            self.read[name] = found
        return found

    def _is_large(self, size: int, devices: int = 1) -> bool:
        """Return whether so many bytes are not computed, nor copied."""
        if self._executed_bytes < EXECUTED:
            return size > LARGE
        return size > (LITTLE if devices == 1 else SMALL)

    def _put(self, put: Any, *arrays: Any, devices: Any, **named: Any) -> Any:
        """Take the place of a transfer to devices: a large one gives zeros."""
        import jax

        placed = [_sharding_of(each) for each in devices]
        sizes = [
            0 if to is None else int(getattr(each, "nbytes", 0)) * len(to.device_set)
            for each, to in zip(arrays, placed, strict=True)
        ]
        if not self._is_large(sum(sizes)):
            self._executed_bytes += sum(sizes)
            return put(*arrays, devices=devices, **named)
        small = [number for number, size in enumerate(sizes) if size <= SMALL]
        rest = {key: [value[number] for number in small] for key, value in named.items()}
        kept = iter(put(*(arrays[number] for number in small), devices=[devices[number] for number in small], **rest))
        return [
            next(kept) if size <= SMALL else zero_array(jax.typeof(each), to, True)
            for each, to, size in zip(arrays, placed, sizes, strict=True)
        ]

    def bytes_beside(self, used: Sequence[Any]) -> int:
        """Return the bytes of the fullest device in arrays that the script holds and a function does not use."""
        import jax

        known = set(map(id, used))
        known |= {number for number, reference in self._given_up.items() if reference() is not None}
        most = fullest([each for each in jax.live_arrays() if id(each) not in known])
        return most if most > NOTABLE else 0


def fullest(arrays: Sequence[Any]) -> int:
    """Return the bytes that arrays take of the device that has most of them. Memory of the host is none."""
    by_device: Counter[Any] = Counter()
    for each in arrays:
        sharding = getattr(each, "sharding", None)
        if sharding is not None and sharding.memory_kind in (None, "device", "unpinned_host"):
            size = math.prod(sharding.shard_shape(each.shape)) * int(each.dtype.itemsize)
            by_device.update(dict.fromkeys(sharding.device_set, size))
    return max(by_device.values(), default=0)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that a class binds to its objects, which a partial or a bound method is not."""
    return lambda *given, **named: function(*given, **named)


def is_left_out(jit: CalledJit) -> bool:
    """Return whether a function is never executed."""
    return jit.has_kernel or jit.bytes > LARGE


def _sharding_of(device: Any) -> Any:
    """Return the sharding that a transfer is for; None where it is for no device of this process."""
    import jax

    if isinstance(device, jax.Device):
        return jax.sharding.SingleDeviceSharding(device)
    return device if isinstance(device, jax.sharding.Sharding) else None


@dataclass(frozen=True)
class _Ahead:
    """Compilation ahead of time: large functions are not compiled, and are called as jitted ones are."""

    _platform: str
    _primitive: Any
    _lower: Any
    _compile: Any
    _traced: list[tuple[Any, Any]] = field(default_factory=list)  # pairs of a lowered function and what was lowered

    def lower(self, traced: Any, *positional: Any, **named: Any) -> Any:
        if is_left_out(described("", traced.jaxpr)):
            named.setdefault("lowering_platforms", (self._platform,))
        self._traced.append((self._lower(traced, *positional, **named), traced))
        return self._traced[-1][0]

    def compile(self, lowered: Any, *positional: Any, **named: Any) -> Any:
        traced = next((each for one, each in self._traced if one is lowered), None)
        if traced is None or not is_left_out(described("", traced.jaxpr)):
            return self._compile(lowered, *positional, **named)
        return NotCompiled(traced, self._primitive)


@dataclass(frozen=True)
class NotCompiled:
    """A function that a script compiles ahead of time, in the place of a `jax.stages.Compiled`."""

    _traced: Any
    _primitive: Any

    def __call__(self, *positional: Any, **named: Any) -> Any:
        import jax

        given = jax.tree.leaves((positional, named))
        return jax.tree.unflatten(
            self._traced.out_tree, self._primitive.bind(*self._traced._consts, *given, **self._traced._params)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._traced, name)

    def cost_analysis(self) -> dict[str, float]:
        return {}

    def memory_analysis(self) -> None:
        return None

    def as_text(self) -> str:
        return ""
