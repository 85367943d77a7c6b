"""Calling a user's step, and lowering what it returns: each mistake is one line with its remedy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.changed_program import lower_again, lower_changed, lower_traced, remember_traced
from tb_memplugin.fit.changes import Changes
from tb_memplugin.fit.step_file import EXAMPLE

WRITE = f"write it as in: {EXAMPLE}"
OWN_DEVICES = ("devices", "local_devices", "device_count", "local_device_count")
ON_DEVICES = "use the argument `devices` for the mesh and the shardings, in place of jax.devices()"


def lower_step(step: Callable[..., Any], name: str, devices: list[Any], knobs: dict[str, Any], changes: Changes) -> Any:
    """Call a step with the devices of a target, and lower what it returns."""
    _require_knobs(step, name, devices, knobs)
    with remember_traced() as found, _own_devices() as called:
        try:
            returned = step(devices, **knobs)
        except Exception as error:
            if called:
                error.add_note(f"The step calls {called[0]}: {ON_DEVICES}")
            raise
    if hasattr(returned, "compile") and hasattr(returned, "as_text"):
        lowered = lower_again(returned, found, changes) if changes.of_function else returned
    elif hasattr(returned, "jaxpr") and hasattr(returned, "lower"):
        lowered = lower_traced(returned, changes) if changes.of_function else returned.lower()
    else:
        function, positional, named = _call(returned, name)
        lowered = _lower_on(function, positional, named, devices, changes)
    if not _is_on(lowered, devices):
        raise InputError("Lowered for other devices than those of the target", name, ON_DEVICES)
    return lowered


def _require_knobs(step: Callable[..., Any], name: str, devices: list[Any], knobs: Mapping[str, Any]) -> None:
    """Raise an InputError where a step cannot be called with these knobs."""
    if isinstance(step, type):
        raise InputError("The step is a class", name, WRITE)
    if hasattr(step, "lower") and hasattr(step, "trace"):
        raise InputError("The step is jitted itself", name, WRITE)
    try:
        signature = inspect.signature(step)
    except (ValueError, TypeError):
        return  # of a compiled function
    parameters = list(signature.parameters.values())
    names = [one.name for one in parameters[1:] if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    if not parameters:
        raise InputError("The step has no argument for the devices", name, WRITE)
    try:
        signature.bind(devices, **knobs)
    except TypeError:
        takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters)
        listed = f"the step has {', '.join(names)}" if names else f"the step has none: {WRITE}"
        if unknown := [knob for knob in knobs if knob not in names and not takes_any]:
            raise InputError("No such knob", ", ".join(unknown), listed) from None
        missing = [
            one.name
            for one in parameters[1:]
            if one.default is one.empty
            and one.name not in knobs
            and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        ]
        if missing:
            raise InputError("A knob without a value", ", ".join(missing), f"add --set {missing[0]}=VALUE") from None


def _call(returned: Any, name: str) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    """Return the jitted function with its arguments, positional and by name. InputError for anything else."""
    if hasattr(returned, "memory_analysis"):
        raise InputError(
            "The step returned a compiled function", name, "return it before .compile(): jax.jit(f), shapes"
        )
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
        raise InputError(
            f"The keyword arguments are {_kind(named)}",
            name,
            "return them as a dict, as in: return jax.jit(f), (shapes,), {'key': shape}",
        )
    return function, positional, named


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "nothing" if value is None else f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _lower_on(
    function: Any, positional: Sequence[Any], named: Mapping[str, Any], devices: list[Any], changes: Changes
) -> Any:
    """Lower a function; without any sharding, for the first device of the target."""
    import jax

    leaves = jax.tree.leaves((positional, named))
    if any(not placed.device_set <= set(devices) for leaf in leaves if (placed := _placed(leaf)) is not None):
        raise InputError("The arguments are on other devices than those of the target", "sharding", ON_DEVICES)
    if any(_placed(leaf) is not None for leaf in leaves):
        return lower_changed(function, positional, named, changes)
    try:
        lowered = lower_changed(function, positional, named, changes)
    except Exception:  # kernels refuse this machine's CPU, for which a function without shardings is lowered
        with suppress(Exception):
            return lower_changed(function, *_on_first(devices, positional, named), changes)
        raise
    if _is_on(lowered, devices):
        return lowered
    return lower_changed(function, *_on_first(devices, positional, named), changes)


def _on_first(
    devices: list[Any], positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the shapes of arguments on the first device."""
    import jax

    first = jax.sharding.SingleDeviceSharding(devices[0])

    def place(leaf: Any) -> Any:
        is_array = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=first) if is_array else leaf

    return jax.tree.map(place, (tuple(positional), dict(named)))  # type: ignore[no-any-return]


def _placed(leaf: Any) -> Any:
    """Return the sharding that an argument was given, if it was given one."""
    sharding = getattr(leaf, "sharding", None)
    return sharding if getattr(leaf, "committed", True) and hasattr(sharding, "device_set") else None


def _is_on(lowered: Any, devices: list[Any]) -> bool:
    """Return whether a lowered function is for devices of the target, as far as it can be told."""
    return set(_devices(lowered)) <= set(devices)


def devices_used(lowered: Any) -> int:
    """Return the number of devices that a lowered function is for; 0 where it cannot be told."""
    return len(_devices(lowered))


def _devices(lowered: Any) -> tuple[Any, ...]:
    inner = getattr(getattr(lowered, "lowered", lowered), "_lowering", None)  # in wrappers of Flax and Equinox
    return tuple(getattr(inner, "_device_list", None) or ())


@contextmanager
def _own_devices() -> Iterator[list[str]]:
    """Yield the names of functions of jax that were called and return this machine's devices."""
    import jax

    called: list[str] = []
    before = {name: getattr(jax, name) for name in OWN_DEVICES}

    def recorded(name: str) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            called.append(f"jax.{name}()")
            return before[name](*positional, **named)

        return call

    for name in OWN_DEVICES:
        setattr(jax, name, recorded(name))
    try:
        yield called
    finally:
        for name, function in before.items():
            setattr(jax, name, function)
