"""The process that compiles one candidate: python -m tb_memplugin.fit.child FOLDER, which contains the request.

XLA writes the program to the folder's `dump`. Beside it are `versions.json`, and `error.json` if it failed before there
was a program. Nobody waits for the end of the compilation: the memory is assigned a few seconds into it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.cache import Cache, replacing
from tb_memplugin.fit.cache_keys import program_key
from tb_memplugin.fit.changed_program import lower_again, lower_changed, remember_traced
from tb_memplugin.fit.changes import Changes, parse_changes
from tb_memplugin.fit.inputs import Recorder
from tb_memplugin.fit.process import end_with_parent
from tb_memplugin.fit.step_file import EXAMPLE, load_step
from tb_memplugin.fit.targets import Target, devices_of, parse_target

OPTIONS: dict[str, Any] = {"xla_dump_hlo_as_proto": True}
GPU_OPTIONS = {"xla_gpu_autotune_level": 0}  # without a GPU it takes half of the time and chooses nothing
PACKAGES = {"tpu": ("libtpu",), "cuda": ("jax-cuda12-plugin", "jax-cuda13-plugin"), "cpu": ()}  # beside jax, jaxlib
REFUSED = "RESOURCE_EXHAUSTED"
REQUEST, DUMP, ERROR, VERSIONS, KEY = "request.json", "dump", "error.json", "versions.json", "key.json"


def compile_candidate(folder: str, request: dict[str, Any]) -> None:
    """Call the user's function, and compile what it returns, with a dump to the folder."""
    target = parse_target(request["target"])
    assert target is not None
    devices = devices_of(target)
    changes = parse_changes(request.get("changes", ()))
    of_packages, options = versions(target), {**changes.options, **compiler_options(target)}
    _write(folder, VERSIONS, of_packages)
    recorder = Recorder(folder)
    recorder.start()
    lowered = lower(request["step"], devices, {**dict(request["knobs"]), **changes.knobs}, changes)
    inputs = recorder.inputs()
    key = program_key(lowered, str(target), options, of_packages)
    _write(folder, KEY, {"key": key, "inputs": inputs})
    if not (request["cache"] and Cache(Path(request["cache"])).has(key)):
        lowered.compile(compiler_options={**options, "xla_dump_to": str(Path(folder, DUMP))})


def lower(step: str, devices: list[Any], knobs: dict[str, Any], changes: Changes) -> Any:
    """Lower what the user's function returns: a jitted function and its arguments, or a function lowered already."""
    with remember_traced() as found:
        returned = load_step(step)(devices, **knobs)
    if hasattr(returned, "compile") and hasattr(returned, "as_text"):
        return lower_again(returned, found, changes) if changes.of_function else returned
    if not (isinstance(returned, tuple) and len(returned) == 2 and hasattr(returned[0], "lower")):
        raise InputError(f"{step} returned {type(returned).__name__}", step, f"return as in: {EXAMPLE}")
    function, arguments = returned
    return lower_changed(function, arguments, changes)


def compiler_options(target: Target) -> dict[str, Any]:
    return {**OPTIONS, **(GPU_OPTIONS if target.platform == "cuda" else {})}


def versions(target: Target) -> dict[str, str]:
    """Return the versions of the packages that the figures depend on."""
    found = {}
    for name in ("jax", "jaxlib", *PACKAGES[target.platform]):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main(folder: str) -> int:
    request = json.loads(Path(folder, REQUEST).read_text())
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.path[:] = request["path"]
    try:
        compile_candidate(folder, request)
    except InputError as error:
        _write(folder, ERROR, {"text": str(error), "traceback": ""})
    except BaseException as error:
        if REFUSED in str(error):  # XLA has written the program
            return 0
        _write(folder, ERROR, {"text": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()})
    else:
        return 0
    return 1


def _write(folder: str, name: str, value: Mapping[str, Any]) -> None:
    with replacing(Path(folder, name)) as partial:
        Path(partial).write_text(json.dumps(value))


if __name__ == "__main__":
    end_with_parent(sys.stdin.fileno())
    exit_status = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_status)  # without the time that XLA takes to clean up
