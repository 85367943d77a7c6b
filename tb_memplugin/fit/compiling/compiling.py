"""Compiling a candidate in a process of its own, which ends once its memory is assigned."""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from google.protobuf.message import DecodeError

from tb_memplugin.errors import InputError
from tb_memplugin.fit.cache import SETTINGS, Cache, question_key
from tb_memplugin.fit.compile_task import Compiled, CompileTask
from tb_memplugin.fit.compiling.child import CAVEATS, DUMP, ENVIRONMENT, ERROR, KEY, REFUSED, REQUEST, TRACED, VERSIONS
from tb_memplugin.fit.compiling.program_memory import with_beside, with_memory, with_peak, with_used_vmem
from tb_memplugin.fit.inputs import with_package
from tb_memplugin.fit.process import SHAPES, StartedProcess, Stop, wait_for
from tb_memplugin.fit.step.sources import unpack
from tb_memplugin.fit.warm_server import OF_JAX, OF_TORCH, forked
from tb_memplugin.logdir import dumped_file
from tb_memplugin.logdir.names import AFTER_CODEGEN
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.program import Backend
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers import open_file
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.targets import parse_target

IN_CHILD = "TB_MEMPLUGIN_FIT_CHILD"  # environment variable that is set in processes that compile
BACKENDS = {"tpu": Backend.TPU, "cuda": Backend.GPU, "cpu": Backend.CPU}
PROGRAM = "*after_optimizations.hlo.pb"
# Files that XLA writes right after the program with its memory: the first on TPU, the second on GPU.
LATER = ("*after_optimizations_after_buffer_assignment.hlo.pb", "debug_options")
TARGETS = (".target_arguments.txt", ".target_arguments.pb", ".gpu_target_config.pbtxt", "topology.pb")
MAX_SHOWN = 4000  # bytes of a process's output


def compile_task(task: CompileTask, stop: Stop) -> Compiled:
    """Compile a candidate, or find it in the cache, and read its memory. Any failure is part of the outcome.

    CancelledError where it has to stop, after its process has ended.
    """
    request = _request(task)
    cache = Cache(SETTINGS.folder(), SETTINGS.bytes()) if task.uses_cache else None
    question = question_key(request) if cache is not None else ""
    if cache is not None and (known := cache.find(question, task.candidate)):
        return known
    for read_from in (cache, None):  # without the cache if its files are damaged
        with tempfile.TemporaryDirectory(prefix="tb_memplugin_fit_", ignore_cleanup_errors=True) as temporary:
            folder, begun = Path(temporary), time.monotonic()
            end = _run(task, {**request, "cache": str(read_from.folder) if read_from else ""}, folder, stop)
            try:
                found = _read(task, folder, end)
            except Exception as error:  # a bug, which must not end a sweep of hundreds
                text = f"The program cannot be read ({type(error).__name__}: {error}): please report this"
                found = Compiled(Outcome(task.candidate, error=text), {})
            found = replace(found, outcome=replace(found.outcome, seconds=time.monotonic() - begun))
            key: dict[str, Any] = _read_json(folder / KEY)
        if cache is None or not key or (found.outcome.error and end.status != 0):
            return found
        if not found.files and (known := cache.get(key["key"], task.candidate)):
            found = known
        elif found.files:
            cache.put(key["key"], found)
        if found.files:
            if key["inputs"]:
                cache.answer(question, key["key"], key["inputs"])
            return found
    return found


def _request(task: CompileTask) -> dict[str, Any]:
    """Return the request to the process."""
    environment = {**os.environ, **ENVIRONMENT, IN_CHILD: "1"}
    request = {**asdict(task.candidate), "environment": environment, "cwd": os.getcwd(), "path": sys.path}
    request |= {"pickled": task.pickled.hex(), "to_end": task.to_end, "of_torch": task.of_torch}
    request["script"] = asdict(task.script) if task.script is not None else None
    if task.sources is None:
        return request
    folder = unpack(task.sources, SETTINGS.folder())
    place, _, name = task.sources.step.rpartition(":")
    path = [str(folder / str(number)) for number in range(task.sources.roots)]
    step = f"{folder / place}:{name}" if place.endswith(".py") else task.sources.step
    return {**request, "step": step, "cwd": path[task.sources.working], "path": [*path, *sys.path]}


class End(NamedTuple):
    """The end of a process; `failure` names the limit that it exceeded."""

    failure: str
    status: int | None  # None where this process ended it
    printed: str


def _run(task: CompileTask, request: Mapping[str, Any], folder: Path, stop: Stop) -> End:
    """Run a process until its dump is complete, or it ends."""
    environment = request["environment"]
    (folder / DUMP).mkdir()
    (folder / REQUEST).write_text(json.dumps(request))
    with tempfile.TemporaryFile("a+b") as printed:
        command = [sys.executable, "-m", "tb_memplugin.fit.compiling.child", str(folder)]
        imports = OF_TORCH if task.of_torch else OF_JAX
        process = forked(str(folder), printed, environment, imports) or StartedProcess(
            command, printed, with_package(environment)
        )
        try:
            is_done = partial(is_assigned, folder / DUMP) if not task.to_end else bool  # bool() is False
            failure = wait_for(process, task.limits, is_done, printed, stop)
            status = process.status()
        finally:
            process.end()
        return End(failure, status, _last(printed))


def _last(printed: BinaryIO) -> str:
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(size - MAX_SHOWN, 0))
    return printed.read().decode(errors="replace")


def _read(task: CompileTask, folder: Path, end: End) -> Compiled:
    """Return the outcome with the memory of the dumped program, or without a dump, with the error of the process."""
    target = parse_target(task.candidate.target)
    assert target is not None
    target = replace(target, of_torch=task.of_torch)
    outcome = Outcome(task.candidate, capacity_bytes=target.capacity, versions=_read_json(folder / VERSIONS))
    if task.of_torch and not end.failure and (folder / TRACED).exists():
        return _read_traced(task, outcome, folder)
    dumps = programs_of(folder / DUMP)
    if end.failure or not dumps or (folder / ERROR).exists():
        error, traceback = _error(folder, end)
        return Compiled(replace(outcome, error=error, traceback=traceback))
    content = dumps[-1].read_bytes()
    try:
        recordings = read_hlo(content, source=dumps[-1].name)
    except InputError as problem:
        return Compiled(replace(outcome, error=str(problem)))
    program = next(recording for recording in recordings if recording.is_main_memory)
    if program.backend not in (BACKENDS[target.platform], Backend.UNKNOWN):
        text = f"Compiled for {program.backend}: shardings of the shapes must be on `devices`, not on jax.devices()"
        return Compiled(replace(outcome, error=text))
    at_end = _read_json(folder / REFUSED)  # a small program may be complete before its process is ended
    outcome = with_memory(outcome, program, content, to_end=bool(at_end))
    if task.to_end or (outcome.reserved_bytes or 0) <= (target.capacity or 0):
        outcome = replace(outcome, refused=at_end.get("text", ""))
    of_script, key = _read_json(folder / CAVEATS), _read_json(folder / KEY)
    outcome = with_beside(outcome, of_script.get("beside", 0), of_script.get("others", {}))
    caveats = [*outcome.caveats, *of_script.get("caveats", ())]
    if 0 < (used := key.get("devices", 0)) < target.devices:
        text = f"Compiled for {used} of {target.devices} devices: give the arguments shardings on a mesh of `devices`"
        caveats.append(text)
    policies = tuple(key.get("policies", ()))
    outcome = replace(outcome, tokens=key.get("tokens", 0), policies=policies, caveats=tuple(caveats))
    files = {dumps[-1].name: content, **_target_files(dumps[-1])}
    codegen = dumps[-1].with_name(dumps[-1].name.replace(PROGRAM[1:], AFTER_CODEGEN))
    if outcome.vmem_bytes and at_end and codegen.is_file():
        files[codegen.name] = codegen.read_bytes()
        outcome = with_used_vmem(outcome, files[codegen.name])
    return Compiled(outcome, files)


def _read_traced(task: CompileTask, outcome: Outcome, folder: Path) -> Compiled:
    """Return the outcome with the memory of a traced step of PyTorch."""
    content = (folder / TRACED).read_bytes()
    (part,) = open_file(content, TRACED)
    (recording,) = part.read()
    found = replace(outcome, caveats=tuple(_read_json(folder / CAVEATS)["caveats"]))
    return Compiled(with_peak(found, recording), {TRACED: content})


def _target_files(dump: Path) -> dict[str, bytes]:
    """Return the small files beside a dump that describe its target, by their paths from the dump's folder."""
    dumped = dumped_file(str(dump)).program
    paths = [Path(path) for path in (dumped.beside if dumped is not None else ()) if path.endswith(TARGETS)]
    return {str(path.relative_to(dump.parent)): path.read_bytes() for path in paths if path.is_file()}


def _error(folder: Path, end: End) -> tuple[str, str]:
    """Return the error of a process that wrote no program, and the traceback of the user's code."""
    found = _read_json(folder / ERROR)
    if end.failure or found:
        return end.failure or found["text"], found.get("traceback", "")
    if end.status == -9:
        return f"Killed by the system, which is probably out of memory: {SHAPES}, or run fewer --jobs", end.printed
    if end.status is not None and end.status < 0:
        return f"The compiler ended by {signal.Signals(-end.status).name}: see what it printed", end.printed
    return f"The process ended without a program, with exit status {end.status}: see what it printed", end.printed


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found


def programs_of(folder: Path) -> list[Path]:
    """Return the dumps with buffer assignment, the largest last: small programs compute constants."""
    return sorted(folder.glob(PROGRAM), key=lambda path: path.stat().st_size)


def is_assigned(folder: Path) -> bool:
    """Return whether the compiler has written a whole dump, that is, has begun the file that follows it.

    On a busy machine, a file that XLA writes later may appear first, so the dump has to be a whole message, too.
    """
    names = [".".join(path.name.split(".")[:2]) for path in folder.glob(PROGRAM)]
    has_later = any(any(folder.glob(f"{name}.{end}")) for name in names for end in LATER)
    if not has_later:
        return False
    try:
        dumped = HloProto.FromString(programs_of(folder)[-1].read_bytes())
    except (OSError, IndexError, DecodeError):  # the first two where the step deletes its folder
        return False
    return len(dumped.buffer_assignment.buffer_allocations) > 0
