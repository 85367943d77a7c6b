"""Running a script until its step is found, on fake devices and offline."""

import builtins
import importlib.util
import os
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.compile_task import ScriptCall
from tb_memplugin.fit.knobs import Changes
from tb_memplugin.fit.script.chosen_step import ChosenStep, ScriptEnded
from tb_memplugin.fit.script.fake_input import parse_fake
from tb_memplugin.fit.script.isolation import Isolation
from tb_memplugin.fit.script.jits import CalledJit
from tb_memplugin.fit.script.on_target import Lowerer, ScriptProgram
from tb_memplugin.fit.script.replaced import HOOK, Replaced, Replacing, in_isolation
from tb_memplugin.fit.script.watching import LARGE
from tb_memplugin.targets import Target

BACKENDS = {"tpu": "tpu", "cuda": "gpu", "cpu": "cpu"}  # as jax.default_backend() names them
JIT = "name the function with --jit NAME, or write a function with `devices`"
OF_JAX = ("jax", "jaxlib", "tb_memplugin")  # packages that see the fake devices as they are
SHOWN = 5  # other large functions


def run_script(
    place: str, call: ScriptCall, changes: Changes, devices: Sequence[Any], target: Target, own: str
) -> tuple[ScriptProgram, list[str], dict[str, Any]]:
    """Run a script, a file or a module, until its step is found. InputError where it has none.

    `changes` contain its knobs, with their values. Return the step, lowered for the target, its caveats, and bytes of
    one device: of arrays that the script keeps `beside` the step, and what each of the `others` needs at least.
    """
    import jax

    config: Any = jax.config
    if config.jax_num_cpu_devices != len(devices):  # else the backends may be there already
        config.update("jax_num_cpu_devices", len(devices))
    config.update("jax_enable_compilation_cache", False)
    call = call.filled(changes.knobs.items())
    chosen = ChosenStep(Lowerer(devices, target.platform, changes), call.jit, call.numbers())
    answer_as(target, devices)
    folder = os.path.join(own, "script")
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = folder
    os.mkdir(folder)
    isolation, end = Isolation(folder, own), None
    isolation.start()
    fakes = {name: _always(fake) for name, fake in map(parse_fake, call.fakes)}
    replaced = Replaced({**in_isolation(isolation), **fakes})
    replaced.install()
    try:
        with chosen.watcher.watching():
            _execute(place, call.arguments, replaced)
    except ScriptEnded:
        pass
    except BaseException as error:
        end = error
    finally:
        isolation.is_on = False
    if isinstance(chosen.failure, InputError):  # of a change
        raise chosen.failure
    if chosen.failure is not None:
        reason = f"{type(chosen.failure).__name__}: {str(chosen.failure).strip().partition(chr(10))[0]}"
        raise InputError(f"The step cannot be lowered ({reason[:300]})", str(chosen.jit), JIT) from chosen.failure
    failed = end is not None and not (isinstance(end, SystemExit) and not end.code)
    if chosen.jit is None or chosen.program is None or (failed and not chosen.jit.updates and not call.jit):
        raise _no_step(place, call, chosen, end, isolation)
    if unused := replaced.unused & set(fakes):
        names = ", ".join(sorted(unused))
        text = "name it as MODULE.FUNCTION, or FUNCTION of the script"
        raise InputError("The script has no such function", names, text)
    others = {jit.name: jit.needed_bytes for jit in sorted(chosen.others(), key=lambda jit: jit.needed_bytes)}
    caveats = [*_facts(chosen.jit, chosen, end), *isolation.tried()]
    return chosen.program, caveats, {"beside": chosen.beside_bytes, "others": others}


def _always(fake: Callable[..., Any]) -> Replacing:
    return lambda _: fake


def _execute(place: str, arguments: Sequence[str], replaced: Replaced) -> None:
    """Run a file or a module as `python` runs it."""
    if place.endswith(".py"):
        sys.argv = [place, *arguments]
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
        main = types.ModuleType("__main__")
        main.__dict__.update(__file__=place, __builtins__=builtins, **{HOOK: replaced.called})
        sys.modules["__main__"] = main
        with open(place, "rb") as file:
            code = replaced.compiled(file.read(), place)
        exec(code, main.__dict__)
        return
    if importlib.util.find_spec(place) is None:
        raise InputError("No such module", place, "install it, or start in its folder")
    sys.argv = [place, *arguments]
    sys.path.insert(0, os.getcwd())
    runpy.run_module(place, run_name="__main__", alter_sys=True)


def answer_as(target: Target, devices: Sequence[Any]) -> None:
    """Let jax answer questions about the platform as it does on the target. Many hosts are simulated as one."""
    import jax

    backend = BACKENDS[target.platform]
    _answer_as(type(jax.devices("cpu")[0]), "platform", backend)
    _answer_as(type(jax.devices("cpu")[0]), "device_kind", getattr(devices[0], "device_kind", backend))
    _answer_as(type(jax.devices("cpu")[0].client), "platform", backend)
    for name in ("devices", "local_devices", "device_count", "local_device_count"):
        setattr(jax, name, _on_cpu(getattr(jax, name)))
    jax.default_backend = lambda: backend
    for name in ("initialize", "shutdown"):
        setattr(jax.distributed, name, lambda *_, **__: None)


def _answer_as(kind: Any, name: str, answer: str) -> None:
    """Let an attribute of JAX's devices be that of the target for a script; for JAX itself they stay the CPU's."""
    known = getattr(kind, name)

    def answered(device: Any) -> Any:
        asking = sys._getframe(1).f_globals.get("__name__", "")
        return known.__get__(device) if asking.partition(".")[0] in OF_JAX else answer

    setattr(kind, name, property(answered))


def _on_cpu(function: Any) -> Any:
    """Return a function of jax that takes the CPU for any platform."""

    def call(*positional: Any, **named: Any) -> Any:
        if positional and isinstance(positional[0], str):
            positional = ("cpu", *positional[1:])
        if named.get("backend") is not None:
            named["backend"] = "cpu"
        return function(*positional, **named)

    return call


def _facts(step: CalledJit, chosen: ChosenStep, end: BaseException | None) -> list[str]:
    """Return lines about the step that was found."""
    found = [f"The step of the script is {step}"]
    found += [
        f"The script read a whole number that {name} computes; as it was not executed, {value} was assumed: "
        f"--assume {name}=NUMBER gives another"
        for name, value in chosen.watcher.read.items()
    ]
    if others := chosen.others():
        found.append(f"Other large functions, for --jit: {', '.join(map(str, others[:SHOWN]))}")
    if end is not None and not (isinstance(end, SystemExit) and not end.code):
        found.append(f"The script ended with {type(end).__name__} after the step was called: {end}")
    elif end is not None or step.calls < 2:
        found.append("The script ended before its step was called again")
    if not step.updates:
        text = "The step returns no new values of what it takes: if it is an evaluation, name the step with --jit"
        found.append(text)
    return found


def _no_step(
    place: str, call: ScriptCall, chosen: ChosenStep, end: BaseException | None, isolation: Isolation
) -> BaseException:
    """Return the error of a script in which no step was found."""
    name = Path(place).name
    if isinstance(end, InputError):
        return end
    large = [jit for jit in (chosen.jit, *chosen.others()) if jit is not None and jit.bytes > LARGE]
    called = ", ".join(map(str, large[:SHOWN]))
    others = f"; large functions that it had called, for --jit: {called}" if called else ""
    if isinstance(end, SystemExit) and end.code:
        text = f"The script ended with status {end.code} before its step" if isinstance(end.code, int) else end.code
        return InputError(text, name, "check its command line, after `--`")
    if isinstance(end, ModuleNotFoundError):
        text = f"The script imports {end.name}, which is not installed"
        return InputError(text, name, f"pip install {end.name}{others}")
    if isinstance(end, FileNotFoundError):
        text = f"give it that file, or let --fake-input return data in its place{others}"
        return InputError(f"The script reads {end.filename}, which is missing", name, text)
    if end is not None and not isinstance(end, SystemExit):
        for note in (f"The step was not reached{others}", *isolation.tried()):
            end.add_note(note)
        return end
    if call.jit:
        names = ", ".join(dict.fromkeys(jit.name for jit in chosen.watcher.called.values() if jit.bytes)) or "none"
        return InputError(f"The script calls no jitted function {call.jit}", name, f"it calls {names[:300]}")
    return InputError("The script ended without calling a jitted function", name, "let it make at least one step")
