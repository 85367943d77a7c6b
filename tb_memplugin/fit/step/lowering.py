"""Calling a user's step, and lowering the function that it returns. Each mistake raises one line with its remedy."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import Changes
from tb_memplugin.fit.process import SHAPES
from tb_memplugin.fit.script.on_target import moved_sharding
from tb_memplugin.fit.step.changed_program import lower_again, lower_changed, lower_traced, remember_traced, replaced
from tb_memplugin.fit.step.step_file import EXAMPLE
from tb_memplugin.model.fit_plan import is_batch

WRITE = f"write it as in: {EXAMPLE}"
OWN_DEVICES = ("devices", "local_devices", "device_count", "local_device_count", "make_mesh")
ON_DEVICES = "use the argument `devices` for the mesh and the shardings, in place of jax.devices()"


def lower_step(step: Callable[..., Any], name: str, devices: list[Any], knobs: dict[str, Any], changes: Changes) -> Any:
    """Call a step with the devices of a target, and lower the function that it returns."""
    _require_knobs(step, name, devices, knobs)
    with _placed_on(devices), remember_traced() as found, _own_devices() as called:
        try:
            lowered = _lower(step(devices, **knobs), name, devices, changes, found)
        except InputError:
            raise
        except Exception as error:
            if called:
                error.add_note(f"The step calls {called[0]}: {ON_DEVICES}")
            if "compile-only client" in str(error):
                error.add_note(f"The step creates arrays on `devices`, which are descriptions: {SHAPES}")
            raise
    if not _is_on(lowered, devices):
        raise InputError("Lowered for other devices than those of the target", name, ON_DEVICES)
    return lowered


def _lower(returned: Any, name: str, devices: list[Any], changes: Changes, found: list[tuple[Any, Any]]) -> Any:
    """Lower what a step returned. `found` has pairs of a traced and a lowered function."""
    if hasattr(returned, "compile") and hasattr(returned, "as_text"):
        return lower_again(returned, found, changes) if changes.of_function else returned
    if hasattr(returned, "jaxpr") and hasattr(returned, "lower"):
        return lower_traced(returned, changes) if changes.of_function else returned.lower()
    function, positional, named = _call(returned, name)
    positional, named = _with_devices((positional, named), devices)
    _require_placed(positional, named, devices)
    return lower_changed(function, positional, named, changes)


def _require_knobs(step: Callable[..., Any], name: str, devices: list[Any], knobs: Mapping[str, Any]) -> None:
    """Raise an InputError where a step cannot be called with these knobs."""
    if isinstance(step, type):
        raise InputError("The step is a class", name, WRITE)
    if hasattr(step, "lower") and hasattr(step, "trace"):
        raise InputError("The step is jitted itself", name, WRITE)
    try:
        signature = inspect.signature(step)
    except (ValueError, TypeError):
        return  # a compiled function has none
    parameters = list(signature.parameters.values())
    own = [one for one in parameters[1:] if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    names = [one.name for one in own]
    if not parameters:
        raise InputError("The step has no argument for the devices", name, WRITE)
    try:
        signature.bind(devices, **knobs)
    except TypeError:
        takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters)
        listed = f"the step has {', '.join(names)}" if names else f"the step has none: {WRITE}"
        if unknown := [knob for knob in knobs if knob not in names and not takes_any]:
            raise InputError("No such knob", ", ".join(unknown), listed) from None
        if missing := [one.name for one in own if one.default is one.empty and one.name not in knobs]:
            raise InputError("A knob without a value", ", ".join(missing), f"add --set {missing[0]}=VALUE") from None


def _call(returned: Any, name: str) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    """Return the jitted function with its arguments, positional and by name. InputError for anything else."""
    if hasattr(returned, "memory_analysis"):
        text = "return it before .compile(): jax.jit(f), shapes"
        raise InputError("The step returned a compiled function", name, text)
    if not isinstance(returned, tuple) or len(returned) not in (2, 3):
        kind = f"a tuple of {len(returned)}" if isinstance(returned, tuple) else _kind(returned)
        raise InputError(f"The step returned {kind}", name, WRITE)
    function, positional, named = returned if len(returned) == 3 else (*returned, {})
    if not hasattr(function, "lower"):
        text = "wrap it in jax.jit" if callable(function) else WRITE
        raise InputError(f"The step returned {_kind(function)} that is not jitted", name, text)
    if not isinstance(positional, tuple | list):
        text = f"The arguments are {_kind(positional)}"
        raise InputError(text, name, "return them as a tuple, as in: return jax.jit(f), (shapes,)")
    if not isinstance(named, Mapping):
        text = "return them as a dict, as in: return jax.jit(f), (shapes,), {'key': shape}"
        raise InputError(f"The keyword arguments are {_kind(named)}", name, text)
    return function, positional, named


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "nothing" if value is None else f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _with_devices(tree: Any, devices: list[Any]) -> Any:
    """Return arguments in which shapes on an abstract mesh, as `jax.eval_shape` makes under a mesh, are on devices."""
    import jax

    def is_abstract(leaf: Any) -> bool:
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        return isinstance(mesh, jax.sharding.AbstractMesh) and not mesh.empty and mesh.size <= len(devices)

    def placed(leaf: Any) -> Any:
        if not is_abstract(leaf):
            return leaf
        return leaf.update(sharding=moved_sharding(leaf.sharding, devices[: leaf.sharding.mesh.size], devices))

    return jax.tree.map(placed, tree) if any(map(is_abstract, jax.tree.leaves(tree))) else tree


def _require_placed(positional: Sequence[Any], named: Mapping[str, Any], devices: list[Any]) -> None:
    """Raise an InputError where an argument is placed on devices other than the target's."""
    import jax

    shardings = [_placed(leaf) for leaf in jax.tree.leaves((positional, named))]
    if any(sharding is not None and not sharding.device_set <= set(devices) for sharding in shardings):
        raise InputError("The arguments are on other devices than those of the target", "sharding", ON_DEVICES)


@contextmanager
def _placed_on(devices: list[Any]) -> Iterator[None]:
    """Lower functions without any sharding for the target's first device, in place of this machine's device."""
    import jax

    lower = jax.stages.Traced.lower
    only = jax.sharding.SingleDeviceSharding(devices[0])

    def lower_on(traced: Any, *positional: Any, **named: Any) -> Any:
        try:
            result = lower(traced, *positional, **named)
        except Exception:
            # Kernels of Pallas cannot be lowered for the CPU.
            if not _has_no_place(traced):
                raise
        else:
            if _is_on(result, devices) or not _has_no_place(traced):
                return result
        traced._params = {**traced._params, "in_shardings": tuple(only for _ in traced._params["in_shardings"])}
        traced._lojax = None  # cached for this machine's device
        return lower(traced, *positional, **named)

    with replaced(jax.stages.Traced, "lower", lower_on):
        yield


def _has_no_place(traced: Any) -> bool:
    """Return whether neither a function's author nor its arguments choose devices."""
    given = getattr(traced, "_params", {}).get("in_shardings", ())
    arguments = getattr(traced, "_meta_tys_flat", ())
    return bool(given) and not any(
        one is not None for one in (*map(_placed, arguments), *(getattr(one, "device_set", None) for one in given))
    )


def _placed(leaf: Any) -> Any:
    """Return the sharding of an argument, None if it has none."""
    sharding = getattr(leaf, "sharding", None)
    return sharding if getattr(leaf, "committed", True) and hasattr(sharding, "device_set") else None


def _is_on(lowered: Any, devices: list[Any]) -> bool:
    """Return whether a lowered function is for devices of the target, or its devices are unknown."""
    return set(lowered_for(lowered)) <= set(devices)


def tokens_of(lowered: Any, knobs: Mapping[str, Any]) -> int:
    """Return the numbers in the largest integer argument that has a sequence for each item of the batch; 0 without one.

    An item's dimension has the size of a knob for the batch, or a multiple of it: such a knob may be for each device.
    """
    import jax

    batches = {value for name, value in knobs.items() if is_batch(name) and type(value) is int and value > 0}
    inner = getattr(lowered, "lowered", lowered)
    leaves: list[Any] = [getattr(leaf, "_aval", leaf) for leaf in jax.tree.leaves(getattr(inner, "args_info", None))]
    if not leaves:  # of a script's step
        leaves = list(getattr(getattr(inner, "_lowering", None), "compile_args", {}).get("global_in_avals", ()))
    sizes = [
        leaf.size
        for leaf in leaves
        if len(getattr(leaf, "shape", ())) > 1
        and jax.numpy.issubdtype(leaf.dtype, jax.numpy.integer)
        and any(leaf.shape[0] % batch == 0 or leaf.size // leaf.shape[-1] == batch for batch in batches)
    ]
    return int(max(sizes, default=0))


def lowered_for(lowered: Any) -> tuple[Any, ...]:
    """Return the devices that a lowered function is for; none where they are unknown."""
    inner = getattr(getattr(lowered, "lowered", lowered), "_lowering", None)  # in wrappers of Flax and Equinox
    return tuple(getattr(inner, "_device_list", None) or ())


@contextmanager
def _own_devices() -> Iterator[list[str]]:
    """Yield a list that gets the names of jax's functions that return this machine's devices, as they are called."""
    import jax

    called: list[str] = []

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            if named.get("devices") is None:
                called.append(f"jax.{name}()")
            return function(*positional, **named)

        return call

    with ExitStack() as stack:
        for name in OWN_DEVICES:
            stack.enter_context(replaced(jax, name, recorded(name, getattr(jax, name))))
        yield called
