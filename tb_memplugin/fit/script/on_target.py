"""Functions lowered on fake devices of the CPU, moved to a target's devices, and zeros in place of their results.

Knows JAX's internals. Device number N of the script is the target's device number N.
"""

import copy
import importlib
import math
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tb_memplugin.fit.knobs import Changes
from tb_memplugin.fit.script.jits import SMALL, every_equation
from tb_memplugin.fit.step.changed_program import change

# Linux refuses a writable map of more than its free memory, even if it is never touched.
READ_ONLY = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, "prot": mmap.PROT_READ} if os.name == "posix" else {}
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


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
class Lowerer:
    """Lowers functions that a script calls for a target, its step with changes."""

    devices: Any  # the target's, by number: a sequence or a mapping
    platform: str
    changes: Changes = field(default_factory=Changes)

    def program(self, arguments: Any, parameters: Any) -> ScriptProgram:
        """Return a called function as a program for the target. InputError for a change that is not possible."""
        return ScriptProgram(self._on_target(self._lower(arguments, parameters, changes=self.changes)))

    def zeros(self, arguments: Any, parameters: Any, number: int = 1) -> Iterator[Any]:
        """Yield zeros in place of a called function's results, and a number in place of small ones."""
        import jax

        only = _only_device(arguments, parameters)
        if only is not None:
            yield from (zero_array(aval, only, False, number) for aval in parameters["jaxpr"].out_avals)
            return
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
            yield zero_array(aval, placed, committed, number)

    def _lower(self, arguments: Any, parameters: Any, platform: str = "", changes: Changes | None = None) -> Any:
        """Lower a function for the target's platform, or another one, on the CPU's devices."""
        pjit = importlib.import_module("jax._src.pjit")
        mlir = importlib.import_module("jax._src.interpreters.mlir")
        metas = [pjit.convert_to_metaty(each) for each in arguments]
        # Those attributes of a `jax.stages.Traced` that changes are made to.
        called = SimpleNamespace(_meta_tys_flat=metas, _params=parameters, jaxpr=parameters["jaxpr"])
        if changes is not None and changes.of_function:
            change(called, changes)
        return pjit._resolve_and_lower(
            called._meta_tys_flat,
            lowering_platforms=(platform or self.platform,),
            lowering_parameters=mlir.LoweringParameters(),
            pgle_profiler=None,
            **called._params,
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

    def _chosen_shardings(self, lowered: Any, arguments: Any, parameters: Any) -> Any:
        """Return the shardings that the compiler chooses for results."""
        try:  # in a second or two; the compiler of the target would take a minute
            return self._lower(arguments, parameters, "cpu").compile(FAST)._out_shardings
        except Exception:  # such as of a kernel of Pallas, which the CPU does not have
            return self._on_target(lowered).compile()._out_shardings


def _only_device(arguments: Any, parameters: Any) -> Any:
    """Return the sharding of a function's results where neither it nor its arguments name any; else None."""
    import jax

    given = (*parameters["in_shardings"], *parameters["out_shardings"])
    placed = [getattr(each, "sharding", None) for each in arguments if getattr(each, "committed", False)]
    if placed or any(isinstance(each, jax.sharding.Sharding) for each in given) or not parameters["ctx_mesh"].empty:
        return None
    jaxpr = parameters["jaxpr"]
    if any(equation.primitive.name in ("shard_map", "sharding_constraint") for equation in every_equation(jaxpr.jaxpr)):
        return None
    return jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])


def moved_sharding(sharding: Any, assigned: Sequence[Any], devices: Any) -> Any:
    """Return the same sharding on other devices, which `devices` has by number; `assigned` are those of a program."""
    import jax
    import numpy as np

    impls = importlib.import_module("jax._src.sharding_impls")
    if isinstance(sharding, jax.sharding.NamedSharding):
        mesh = sharding.mesh
        is_abstract = not isinstance(mesh, jax.sharding.Mesh)
        found = list(assigned) if is_abstract else [devices[each.id] for each in mesh.devices.flat]
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


def zero_array(aval: Any, sharding: Any, committed: bool, number: int = 1) -> Any:
    """Return an array of zeros whose memory is shared by all devices, and is never taken; of a number, if it is small.

    Scripts divide by counts that a step returns, and end where a loss is not a number.
    """
    import jax
    import numpy as np

    if jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key):
        key = jax.random.key(0, impl=aval.dtype._impl.name)
        return jax.device_put(jax.numpy.broadcast_to(key, aval.shape), sharding)
    shape = sharding.shard_shape(aval.shape)
    size = math.prod(shape) * aval.dtype.itemsize
    if size <= SMALL and aval.dtype != bool:
        part = np.full(shape, number if np.issubdtype(aval.dtype, np.integer) else 1, aval.dtype)
    else:
        memory = mmap.mmap(-1, max(size, 64), **READ_ONLY)
        part = np.frombuffer(memory, np.uint8)[:size].view(aval.dtype).reshape(shape)
    put = importlib.import_module("jax._src.interpreters.pxla").batched_device_put
    shaped = jax.core.ShapedArray(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=aval.sharding)
    devices = list(sharding._device_assignment)
    with jax.transfer_guard("allow"):
        return put(shaped, sharding, [part] * len(devices), devices, committed)
