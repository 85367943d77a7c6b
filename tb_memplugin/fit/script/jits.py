"""Jitted functions that a script calls: large ones are not executed, and one of them is the step.

Knows JAX's internals. `jit`, functions compiled ahead of time and transfers to devices go through here.
"""

import importlib
import math
import time
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.script.on_target import SMALL, Lowerer, ScriptProgram, every_equation, zero_array
from tb_memplugin.sizes import bytes_text

LARGE = 64 << 20  # bytes of arguments and results from which on a function is not executed
# Models that are initialized array by array would fill memory: after so many bytes of results, the limit is lower.
# On several fake devices, each execution takes milliseconds, and some megabytes.
EXECUTED, LITTLE = 256 << 20, 1 << 20
# A step has been found once it is called again. Where it is small, or returns nothing that it takes, as an evaluation
# before the first step does, no new function may have been called for so long.
SMALL_SECONDS, EVALUATION_SECONDS = 3.0, 20.0


class ScriptEnded(BaseException):
    """The end of a script whose step is found. No `except Exception` of the script can stop it."""


NOTABLE = 1 << 20  # bytes beside a step that are worth a line


@dataclass
class CalledJit:
    """A function with arguments of certain shapes, and how often the script has called it."""

    name: str
    argument_bytes: int
    result_bytes: int
    arguments: int
    equations: int
    returned_bytes: int  # of results that have the shape of an argument, as a new state has
    calls: int = 0

    @property
    def bytes(self) -> int:
        return self.argument_bytes + self.result_bytes

    @property
    def updates(self) -> bool:
        """Whether most of what it returns are new values of what it takes: a state, gradients, or a cache."""
        return self.returned_bytes > SMALL and 2 * self.returned_bytes > self.result_bytes

    @property
    def rank(self) -> tuple[bool, int]:
        """The order in which functions are taken for the step: by work, bytes times operations."""
        return self.updates, self.bytes * self.equations

    def __str__(self) -> str:
        of = f"{self.arguments} arrays of {bytes_text(self.argument_bytes)}"
        return f"{self.name} ({of}, results of {bytes_text(self.result_bytes)})"


@dataclass
class Jits:
    """The functions that a script has called, of which one is its step."""

    devices: Sequence[Any]  # the target's
    platform: str
    wanted: str = ""  # the name of the step, else it is the function with the most work
    called: dict[Any, CalledJit] = field(default_factory=dict)
    step: CalledJit | None = None
    program: ScriptProgram | None = None
    failure: Exception | None = None  # why the step cannot be lowered
    beside_bytes: int = 0  # of one device, in arrays that stay while the step runs and are no arguments of it
    _exact: list[str] = field(default_factory=list)  # types of the step's arguments
    _executed_bytes: int = 0  # of all results that were computed
    _new_at: float = 0.0
    _given_up: dict[int, Any] = field(default_factory=dict)  # weak references to donated arrays, by their ids

    def __post_init__(self) -> None:
        self._lowerer = Lowerer(self.devices, self.platform)

    def watch(self) -> None:
        """See each call of a jitted function in this process, from now on. InputError for an unknown version of JAX."""
        pjit: Any = importlib.import_module("jax._src.pjit")
        names = ("_pjit_call_impl_python", "_get_fastpath_data", "_resolve_and_lower", "convert_to_metaty")
        if missing := [name for name in names if not hasattr(pjit, name)]:
            import jax

            text = "write a function with `devices` in its place, or try jax 0.10 to 0.12"
            raise InputError(f"Scripts cannot be watched in jax {jax.__version__}", missing[0], text)
        pjit._pjit_call_impl_python = partial(self._call, pjit._pjit_call_impl_python)
        pjit._get_fastpath_data = _no_fastpath  # else later calls bypass Python
        context = importlib.import_module("jax._src.interpreters.mlir").ModuleContext
        context.get_backend = lambda *_, **__: self.devices[0].client  # of callbacks, which are lowered for it
        dispatch: Any = importlib.import_module("jax._src.dispatch")
        dispatch._batched_device_put_impl = partial(self._put, dispatch._batched_device_put_impl)
        _watch_compiled(pjit.pjit_p if hasattr(pjit, "pjit_p") else pjit.jit_p)

    def _call(self, execute: Any, *arguments: Any, **parameters: Any) -> Any:
        """Take the place of a call of a jitted function."""
        jaxpr = parameters["jaxpr"]
        shapes, exact = map(_shape_of, [*jaxpr.in_avals, *jaxpr.out_avals]), [*map(str, jaxpr.in_avals)]
        key = (parameters["name"], *shapes)
        if key not in self.called:
            self.called[key] = described(parameters["name"], jaxpr)
            self._new_at = time.monotonic()
        jit = self.called[key]
        jit.calls += 1
        if jit is self.step or self._is_step(jit):
            self.beside_bytes = self._bytes_beside([*arguments, *jaxpr.consts])
            if jit is not self.step or exact != self._exact:  # a state may have other shardings after the first step
                self._set_step(jit, arguments, parameters)
                self._exact = exact
            self._end_if_found(jit)
        devices = max([len(each.sharding.device_set) for each in arguments if hasattr(each, "sharding")], default=1)
        if not self._is_large(jit.bytes, devices):
            self._executed_bytes += jit.result_bytes * devices
            return execute(*arguments, **parameters)
        donated = [each for each, is_donated in zip(arguments, parameters["donated_invars"], strict=True) if is_donated]
        self._given_up.update((id(each), weakref.ref(each)) for each in donated)
        return [*self._lowerer.zeros(arguments, parameters)], None, None, []

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

    def _is_step(self, jit: CalledJit) -> bool:
        if self.wanted:
            return jit.name == self.wanted.removeprefix("jit_")
        return jit.bytes > SMALL and (self.step is None or jit.rank > self.step.rank)

    def _set_step(self, jit: CalledJit, arguments: Any, parameters: Any) -> None:
        self.step, self.program, self.failure = jit, None, None
        try:
            self.program = self._lowerer.program(arguments, parameters)
        except Exception as error:
            self.failure = error

    def _end_if_found(self, step: CalledJit) -> None:
        """End the script when its step is called for the second time."""
        quiet = time.monotonic() - self._new_at
        is_found = quiet > EVALUATION_SECONDS or (step.updates and (step.bytes > LARGE or quiet > SMALL_SECONDS))
        if self.wanted or (step.calls > 1 and is_found):
            raise ScriptEnded

    def others(self) -> list[CalledJit]:
        """Return the other large functions, those with the most work first."""
        found = [jit for jit in self.called.values() if jit is not self.step and jit.bytes > LARGE]
        return sorted(found, key=lambda jit: jit.rank, reverse=True)

    def _bytes_beside(self, used: Sequence[Any]) -> int:
        """Return the bytes of the fullest device in arrays that the script holds and a function does not use."""
        import jax

        known = set(map(id, used))
        known |= {number for number, reference in self._given_up.items() if reference() is not None}
        by_device: Counter[Any] = Counter()
        for each in jax.live_arrays():
            if id(each) not in known and each.sharding.memory_kind in (None, "device", "unpinned_host"):
                size = math.prod(each.sharding.shard_shape(each.shape)) * int(each.dtype.itemsize)
                by_device.update(dict.fromkeys(each.sharding.device_set, size))
        most = max(by_device.values(), default=0)
        return most if most > NOTABLE else 0


def _no_fastpath(*_: Any, **__: Any) -> None:
    """Return nothing, so that each call goes through Python."""


def _sharding_of(device: Any) -> Any:
    """Return the sharding that a transfer is for; None where it is for no device of this process."""
    import jax

    if isinstance(device, jax.Device):
        return jax.sharding.SingleDeviceSharding(device)
    return device if isinstance(device, jax.sharding.Sharding) else None


def _watch_compiled(primitive: Any) -> None:
    """Let large functions that a script compiles itself be called as jitted ones are, without being compiled."""
    stages: Any = importlib.import_module("jax._src.stages")
    lower, compile_lowered = stages.Traced.lower, stages.Lowered.compile
    traced_of: list[tuple[Any, Any]] = []

    def lower_and_remember(traced: Any, *positional: Any, **named: Any) -> Any:
        traced_of.append((lower(traced, *positional, **named), traced))
        return traced_of[-1][0]

    def compile_small(lowered: Any, *positional: Any, **named: Any) -> Any:
        traced = next((each for one, each in traced_of if one is lowered), None)
        if traced is None or described("", traced.jaxpr).bytes <= LARGE:
            return compile_lowered(lowered, *positional, **named)
        return NotCompiled(traced, primitive)

    stages.Traced.lower, stages.Lowered.compile = lower_and_remember, compile_small


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


def described(name: str, jaxpr: Any) -> CalledJit:
    """Return a function that was not called yet."""
    given, returned = (sum(map(_bytes_of, avals)) for avals in (jaxpr.in_avals, jaxpr.out_avals))
    left, again = Counter(map(_shape_of, jaxpr.in_avals)), 0
    for aval in jaxpr.out_avals:
        if left[_shape_of(aval)] > 0:
            left[_shape_of(aval)] -= 1
            again += _bytes_of(aval)
    return CalledJit(name, given, returned, len(jaxpr.in_avals), sum(1 for _ in every_equation(jaxpr.jaxpr)), again)


def _shape_of(aval: Any) -> tuple[Any, str]:
    return getattr(aval, "shape", ()), str(getattr(aval, "dtype", ""))


def _bytes_of(aval: Any) -> int:
    return math.prod(aval.shape) * int(aval.dtype.itemsize) if hasattr(aval, "dtype") else 0
