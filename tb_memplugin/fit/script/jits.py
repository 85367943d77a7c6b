"""Jitted functions that a script calls: large ones are lowered for the target and not executed. Knows JAX's internals.

The devices of the script are fake ones of the CPU, and its device number N is the target's device number N.
"""

import copy
import importlib
import math
import mmap
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.sizes import bytes_text

LARGE = 64 << 20  # bytes of arguments and results from which on a function is not executed
SMALL = 4 << 10  # bytes below which no function is a step: keys, counters and losses
# Linux refuses a writable map of more than its free memory, even if it is never touched.
READ_ONLY = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, "prot": mmap.PROT_READ} if os.name == "posix" else {}
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
QUIET_SECONDS = 3.0  # a small step has been found once it is called again and no new function was for so long


class ScriptEnded(BaseException):
    """The end of a script whose step is found. No `except Exception` of the script can stop it."""


@dataclass
class ScriptProgram:
    """A function lowered for a target's devices, as `jit(f).lower()` returns one."""

    _lowering: Any

    def compiler_ir(self, dialect: str) -> Any:
        """Return the program as a module of StableHLO."""
        return self._lowering.stablehlo()

    def compile(self, compiler_options: Mapping[str, Any]) -> Any:
        return self._lowering.compile(compiler_options=dict(compiler_options))


@dataclass
class CalledJit:
    """A function with arguments of certain shapes, and how often the script has called it."""

    name: str
    argument_bytes: int
    result_bytes: int
    arguments: int
    work: int
    calls: int = 0

    @property
    def bytes(self) -> int:
        return self.argument_bytes + self.result_bytes

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
    _new_at: float = 0.0

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

    def _call(self, execute: Any, *arguments: Any, **parameters: Any) -> Any:
        """Take the place of a call of a jitted function."""
        jaxpr, key = parameters["jaxpr"], (parameters["name"], *map(str, parameters["jaxpr"].in_avals))
        if key not in self.called:
            self.called[key] = _described(parameters["name"], jaxpr)
            self._new_at = time.monotonic()
        jit = self.called[key]
        jit.calls += 1
        self._end_if_found(jit)
        if self._is_step(jit):
            self._set_step(jit, arguments, parameters)
        if jit.bytes <= LARGE:
            return execute(*arguments, **parameters)
        return [*self._zeros(arguments, parameters)], None, None, []

    def _is_step(self, jit: CalledJit) -> bool:
        if self.wanted:
            return jit.name == self.wanted.removeprefix("jit_")
        return jit.bytes > SMALL and jit.work > (self.step.work if self.step else 0)

    def _set_step(self, jit: CalledJit, arguments: Any, parameters: Any) -> None:
        self.step, self.program, self.failure = jit, None, None
        try:
            self.program = ScriptProgram(self._on_target(self._lower(arguments, parameters)))
        except Exception as error:
            self.failure = error
        if self.wanted:
            raise ScriptEnded

    def _end_if_found(self, jit: CalledJit) -> None:
        """End the script when its step is called for the second time."""
        if jit is self.step and (jit.bytes > LARGE or time.monotonic() - self._new_at > QUIET_SECONDS):
            raise ScriptEnded

    def others(self) -> list[CalledJit]:
        """Return the other large functions, with the most work first."""
        found = [jit for jit in self.called.values() if jit is not self.step and jit.bytes > LARGE]
        return sorted(found, key=lambda jit: -jit.work)

    def _lower(self, arguments: Any, parameters: Any, platform: str = "") -> Any:
        """Lower a function for the target's platform, or another one, on the CPU's devices."""
        pjit = importlib.import_module("jax._src.pjit")
        mlir = importlib.import_module("jax._src.interpreters.mlir")
        return pjit._resolve_and_lower(
            [pjit.convert_to_metaty(each) for each in arguments],
            lowering_platforms=(platform or self.platform,),
            lowering_parameters=mlir.LoweringParameters(),
            pgle_profiler=None,
            **parameters,
        )

    def _on_target(self, lowered: Any) -> Any:
        """Return a lowered function with the target's devices in place of the CPU's."""
        import jax
        import numpy as np

        lib: Any = importlib.import_module("jax._src.lib")
        moved = copy.copy(lowered)
        assigned = tuple(self.devices[each.id] for each in lowered._device_list)
        moved._device_list = lib._jax.DeviceList(assigned)
        context = jax.sharding.Mesh(np.empty((), object), ())
        moved.compile_args = {
            **lowered.compile_args,
            **{"backend": self.devices[0].client, "host_callbacks": [], "context_mesh": context},
        }
        for key in ("in_shardings", "out_shardings", "intermediate_shardings"):
            given = lowered.compile_args.get(key)
            moved.compile_args[key] = given and tuple(moved_sharding(each, assigned, self.devices) for each in given)
        return moved

    def _zeros(self, arguments: Any, parameters: Any) -> Iterator[Any]:
        """Yield zeros in place of a function's results."""
        import jax

        lowered = self._lower(arguments, parameters)
        here = {each.id: each for each in jax.devices("cpu")}
        assigned = tuple(lowered._device_list)
        shardings, committed = lowered.compile_args["out_shardings"], lowered.compile_args["committed"]
        if len(assigned) > 1 and not all(isinstance(each, jax.sharding.Sharding) for each in shardings):
            shardings = self._chosen_shardings(lowered, arguments, parameters)
        for aval, sharding in zip(lowered.compile_args["global_out_avals"], shardings, strict=True):
            placed = moved_sharding(sharding, assigned, here)
            if not isinstance(placed, jax.sharding.Sharding):
                placed = _replicated(assigned) if assigned[1:] else jax.sharding.SingleDeviceSharding(assigned[0])
            yield zero_array(aval, placed, committed)

    def _chosen_shardings(self, lowered: Any, arguments: Any, parameters: Any) -> Any:
        """Return the shardings that the compiler chooses for results."""
        try:  # in a second or two; the compiler of the target would take a minute
            return self._lower(arguments, parameters, "cpu").compile(FAST)._out_shardings
        except Exception:  # such as of a kernel of Pallas, which the CPU does not have
            return self._on_target(lowered).compile()._out_shardings


def _no_fastpath(*_: Any, **__: Any) -> None:
    """Return nothing, so that each call goes through Python."""


def _described(name: str, jaxpr: Any) -> CalledJit:
    given, returned = (sum(map(_bytes_of, avals)) for avals in (jaxpr.in_avals, jaxpr.out_avals))
    return CalledJit(name, given, returned, len(jaxpr.in_avals), (given + returned) * _equations(jaxpr.jaxpr))


def _bytes_of(aval: Any) -> int:
    return math.prod(aval.shape) * int(aval.dtype.itemsize) if hasattr(aval, "dtype") else 0


def _equations(jaxpr: Any) -> int:
    count = len(jaxpr.eqns)
    for equation in jaxpr.eqns:
        for value in equation.params.values():
            for each in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(each, "jaxpr", each)
                if hasattr(inner, "eqns"):
                    count += _equations(inner)
    return count


def moved_sharding(sharding: Any, assigned: Sequence[Any], devices: Any) -> Any:
    """Return the same sharding on other devices, which `devices` has by number; `assigned` are those of a program."""
    import jax
    import numpy as np

    impls = importlib.import_module("jax._src.sharding_impls")
    if isinstance(sharding, jax.sharding.NamedSharding):
        mesh = sharding.mesh
        if isinstance(mesh, jax.sharding.Mesh):
            found = [devices[each.id] for each in mesh.devices.flat]
        else:
            found = list(assigned)  # an AbstractMesh
        placed = np.array(found, object).reshape(mesh.axis_sizes)
        return jax.sharding.NamedSharding(
            jax.sharding.Mesh(placed, mesh.axis_names, axis_types=mesh.axis_types),
            sharding.spec,
            memory_kind=sharding.memory_kind if sharding.memory_kind == "pinned_host" else None,
        )
    if isinstance(sharding, jax.sharding.SingleDeviceSharding):
        return jax.sharding.SingleDeviceSharding(assigned[0])
    if isinstance(sharding, impls.GSPMDSharding):
        return impls.GSPMDSharding(tuple(assigned), sharding._hlo_sharding)
    return sharding


def _replicated(devices: Sequence[Any]) -> Any:
    import jax
    import numpy as np

    return jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices, object), "_"), jax.sharding.PartitionSpec())


def zero_array(aval: Any, sharding: Any, committed: bool) -> Any:
    """Return an array of zeros whose memory is shared by all devices, and is never taken."""
    import jax
    import numpy as np

    if jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key):
        key = jax.random.key(0, impl=aval.dtype._impl.name)
        return jax.device_put(jax.numpy.broadcast_to(key, aval.shape), sharding)
    shape = sharding.shard_shape(aval.shape)
    size = math.prod(shape) * aval.dtype.itemsize
    part = np.frombuffer(mmap.mmap(-1, max(size, 64), **READ_ONLY), np.uint8)[:size].view(aval.dtype).reshape(shape)
    shards = [jax.device_put(part, each, may_alias=True) for each in sharding._device_assignment]
    core, array = (importlib.import_module(f"jax._src.{name}") for name in ("core", "array"))
    shaped = core.ShapedArray(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=aval.sharding)
    return array.ArrayImpl(shaped, sharding, shards, committed=committed)
