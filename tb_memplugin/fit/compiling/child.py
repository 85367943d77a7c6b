"""The process that compiles one candidate: python -m tb_memplugin.fit.compiling.child FOLDER, which has the request.

XLA writes the program to the folder's `dump`. Beside it are `versions.json`, and `error.json` if the process failed
before that. The process is ended before the compilation is complete: XLA assigns the memory within a few seconds.
"""

import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.cache import Cache, program_key, replacing
from tb_memplugin.fit.compile_task import ScriptCall
from tb_memplugin.fit.inputs import Recorder, installed_folders, sha256
from tb_memplugin.fit.knobs import Changes, parse_changes
from tb_memplugin.fit.process import end_with_parent
from tb_memplugin.fit.script.run import run_script
from tb_memplugin.fit.step.dumped_program import DumpedProgram
from tb_memplugin.fit.step.lowering import lower_step, lowered_for, tokens_of
from tb_memplugin.fit.step.rematerialization import watched_checkpoints
from tb_memplugin.fit.step.step_file import load_step
from tb_memplugin.model.accelerators import TPUS
from tb_memplugin.model.fit import dumped_files
from tb_memplugin.model.out_of_memory import RESOURCE_EXHAUSTED
from tb_memplugin.targets import Target, gpu_target_config, gpu_topology, parse_target

# Without these, libtpu looks for hardware, and aborts in a second process because of its lock file.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


def devices_of(target: Target) -> list[Any]:
    """Return the devices of a target, as descriptions without hardware, in a process that has ENVIRONMENT set."""
    import jax
    from jax.experimental import topologies

    if target.platform == "cpu":
        jax.config.update("jax_num_cpu_devices", target.chips)
        return list(jax.devices("cpu"))
    if target.platform == "tpu":
        # Before libtpu 0.0.52, a host has four chips unless it says otherwise, which no slice of one chip is made of.
        options: dict[str, Any] = {"chips_per_host_bounds": (1, 1, 1)} if target.chips == 1 else {}
        options |= dict(TPUS[target.chip].options)
        found = topologies.get_topology_desc(platform="tpu", topology_name=str(target), **options)
        return list(found.devices)
    from jax._src import xla_bridge

    jax.config.update("jax_num_cpu_devices", target.chips)  # for scripts, which run on these
    xla_bridge.backends()  # loads the plugin
    shape = gpu_topology(target.chips)
    found = topologies.get_topology_desc(
        platform="cuda", topology_name=shape, topology=shape, target_config=gpu_target_config(target.chip)
    )
    return list(found.devices)


MAX_LINE = 500
OWN = str(Path(__file__).parent.parent)
HIDDEN = (OWN, "<frozen importlib", "<frozen runpy")


def error_line(error: BaseException) -> str:
    """Return one line about an error: its kind, the first line of its message, and where the user's code raised it."""
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    users = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    place = f" ({Path(users[-1].filename).name}:{users[-1].lineno})" if users else ""
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()) if note.startswith("The step "))
    return f"{type(error).__name__}: {message}"[:MAX_LINE] + place + notes


def user_traceback(error: BaseException) -> str:
    """Return the traceback as Python prints it, without frames of this package; empty if it has no user's frames."""
    formatted = traceback.TracebackException.from_exception(error)
    has_users = False
    waiting: list[traceback.TracebackException | None] = [formatted]
    while waiting:
        one = waiting.pop()
        if one is not None:
            kept = [frame for frame in one.stack if not _is_hidden(frame.filename)]
            first = next((number for number, frame in enumerate(kept) if _is_users(frame.filename)), None)
            kept, has_users = kept[first or 0 :], has_users or first is not None  # drop frames before the user's
            one.stack = traceback.StackSummary.from_list(kept)
            waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]
    return "".join(formatted.format()) if has_users or isinstance(error, SyntaxError) else ""


def _is_users(filename: str) -> bool:
    return not _is_hidden(filename) and not filename.startswith(installed_folders())


def _is_hidden(filename: str) -> bool:
    return filename.startswith(HIDDEN)


OPTIONS: dict[str, Any] = {"xla_dump_hlo_as_proto": True}
# Autotuning takes half of the time, and without a GPU chooses nothing: XLA then takes Triton for all matrix products,
# and fuses conversions into them. On a GPU it chooses cuBLAS for most, whose converted operands need memory.
GPU_OPTIONS = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
PACKAGES = {"tpu": ("libtpu",), "cuda": ("jax-cuda12-plugin", "jax-cuda13-plugin"), "cpu": ()}  # beside jax, jaxlib
NEEDED = {  # by platform: modules, one of which must be installed
    "tpu": (("libtpu", ("libtpu",), "pip install 'tb-memplugin[tpu]'"),),
    "cuda": (("jax's CUDA plugin", ("jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13"), "pip install 'jax[cuda12]'"),),
}
MAX_TEXT = 1000  # characters of a refusal
REQUEST, DUMP, ERROR, VERSIONS, KEY = "request.json", "dump", "error.json", "versions.json", "key.json"
TRACED, CAVEATS = "snapshot.pickle", "traced.json"  # of a step of PyTorch; the second of a script, too
REFUSED = "refused.json"  # written once a program is compiled to the end; contains the reason if it was refused


def compile_candidate(folder: str, request: dict[str, Any]) -> None:
    """Call the user's function, and compile what it returns, with a dump to the folder."""
    target = parse_target(request["target"])
    assert target is not None
    changes = parse_changes(request["changes"])
    changes = replace(changes, knobs={**dict(request["knobs"]), **changes.knobs})
    if request["of_torch"]:
        _trace(folder, request, target, changes)
        return
    of_packages = versions(target)
    _write(folder, VERSIONS, of_packages)
    devices = _devices(target)
    recorder = Recorder(folder)
    recorder.start()
    lowered: Any
    of_script: dict[str, Any] = {}
    with watched_checkpoints(changes.remat) as checkpoints:
        if request["script"]:
            place, call = request["step"].rpartition(":")[0], ScriptCall(**request["script"])
            lowered, caveats, of_script = run_script(place, call, changes, devices, target, folder)
            _write(folder, CAVEATS, {"caveats": caveats, **of_script})
        elif dumped_files(request["step"]):
            lowered = DumpedProgram(request["step"], devices, changes)
        else:
            lowered = lower_step(_load(request), request["step"], devices, changes.knobs, changes)
    of_platform = GPU_OPTIONS if target.platform == "cuda" else {}
    inputs, options = recorder.inputs(), {**changes.options, **OPTIONS, **of_platform}
    key = program_key(lowered, str(target), {**options, "to_end": request["to_end"], **of_script}, of_packages)
    _write(folder, VERSIONS, of_packages)  # again: the step may have deleted the folder
    policies = checkpoints.policies_to_try(on_host=target.platform == "tpu")
    of_step = {"tokens": tokens_of(lowered, changes.knobs), "policies": policies}
    _write(folder, KEY, {"key": key, "inputs": inputs, "devices": len(lowered_for(lowered)), **of_step})
    if not (request["cache"] and Cache(Path(request["cache"])).has(key)):
        refused = _compile(lowered, {**options, "xla_dump_to": str(Path(folder, DUMP))}, request)
        _write(folder, REFUSED, {"text": refused})


def _load(request: Mapping[str, Any]) -> Callable[..., Any]:
    pickled = bytes.fromhex(request["pickled"])
    step: Callable[..., Any] = pickle.loads(pickled) if pickled else load_step(request["step"])
    return step


def _trace(folder: str, request: Mapping[str, Any], target: Target, changes: Changes) -> None:
    """Trace a step of PyTorch with changes, which contain its knobs; write its snapshot to the folder."""
    if not _is_installed("torch"):
        raise InputError("torch is not installed", str(target), "pip install torch")
    from tb_memplugin.torch_fit.process_group import rank_of
    from tb_memplugin.torch_fit.tracing import trace_step

    _write(folder, VERSIONS, {"torch": version("torch")})
    recorder = Recorder(folder)
    recorder.start()
    rank, knobs = rank_of(target.devices), changes.knobs
    traced = trace_step(partial(_load, request), request["step"], knobs, target.chip, rank, changes.of_torch)
    _write(folder, CAVEATS, {"caveats": [*map(str, traced.assumptions.found.values())]})
    key = sha256(json.dumps([request["step"], knobs, changes.of_torch, str(target), rank, traced.log.events]).encode())
    _write(folder, KEY, {"key": key, "inputs": recorder.inputs(), "devices": target.devices})
    traced.save(Path(folder, TRACED))


def _devices(target: Target) -> list[Any]:
    """Return the devices of a target. InputError where its compiler is not installed, or refuses it."""
    for title, modules, remedy in (("jax", ("jax",), "pip install jax"), *NEEDED.get(target.platform, ())):
        if not any(map(_is_installed, modules)):
            raise InputError(f"{title} is not installed", str(target), remedy)
    try:
        return devices_of(target)
    except Exception as error:
        text = f"The compiler refuses the target ({error_line(error)})"
        raise InputError(text, str(target), "try another size, or another version of jax") from None


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


def _compile(lowered: Any, options: dict[str, Any], request: Mapping[str, Any]) -> str:
    """Compile; return the compiler's reason if memory is too small. XLA dumps such a program, too."""
    try:
        lowered.compile(compiler_options=options)
    except Exception as error:
        text = str(error)
        if RESOURCE_EXHAUSTED in text:
            return " ".join(text.split())[:MAX_TEXT]
        raise InputError("The compiler refuses the program", request["step"], error_line(error)) from error
    return ""


def versions(target: Target) -> dict[str, str]:
    """Return the versions of the packages that the figures depend on."""
    found = {}
    for name in ("jax", "jaxlib", *PACKAGES[target.platform]):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
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
        cause = error.__cause__
        _write(folder, ERROR, {"text": str(error), "traceback": user_traceback(cause) if cause else ""})
    except BaseException as error:
        _write(folder, ERROR, {"text": error_line(error), "traceback": user_traceback(error)})
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
    os._exit(exit_status)  # skips XLA's cleanup, which takes time
