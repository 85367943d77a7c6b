"""Compiling a candidate in a process of its own, which ends once its memory is assigned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from google.protobuf.message import DecodeError

from tb_memplugin.errors import InputError
from tb_memplugin.fit.child import ERROR, VERSIONS
from tb_memplugin.fit.program_memory import with_memory
from tb_memplugin.fit.targets import ENVIRONMENT, parse_target
from tb_memplugin.model.fit import Candidate, Outcome
from tb_memplugin.model.program import Backend
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers.hlo import read_hlo

POLL_SECONDS = 0.05
TIMEOUT_SECONDS = 600
BACKENDS = {"tpu": Backend.TPU, "cuda": Backend.GPU, "cpu": Backend.CPU}
PROGRAM = "*after_optimizations.hlo.pb"
LATER = ("*after_optimizations_after_buffer_assignment.hlo.pb", "debug_options")  # written after it: TPU, GPU


def compile_and_read(candidate: Candidate, folder: Path, timeout: float = TIMEOUT_SECONDS) -> Outcome:
    """Compile a candidate, with its dump in the folder, and read its memory."""
    begun = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    text = _run(candidate, folder, timeout)
    target = parse_target(candidate.target)
    assert target is not None
    outcome = Outcome(
        candidate,
        seconds=time.monotonic() - begun,
        capacity_bytes=target.capacity,
        versions=_read_json(folder / VERSIONS),
    )
    dumps = programs_of(folder)
    if not dumps:
        error, traceback = _error(folder, text)
        return replace(outcome, error=error, traceback=traceback)
    try:
        recordings = read_hlo(dumps[-1].read_bytes(), source=str(dumps[-1]))
    except InputError as problem:
        return replace(outcome, error=str(problem))
    program = next(recording for recording in recordings if recording.is_main_memory)
    backend = program.program.backend if program.program is not None else Backend.UNKNOWN
    if backend not in (BACKENDS[target.platform], Backend.UNKNOWN):
        text = f"Compiled for {backend}: shardings of the shapes must be on `devices`, not on jax.devices()"
        return replace(outcome, error=text)
    return with_memory(outcome, program)


def _run(candidate: Candidate, folder: Path, timeout: float) -> str:
    """Run the child until its dump is complete, and return what it printed."""
    request = asdict(candidate)
    with Path(folder, "stderr.txt").open("wb+") as printed:
        child = subprocess.Popen(
            [sys.executable, "-m", "tb_memplugin.fit.child", str(folder)],
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
        try:
            assert child.stdin is not None
            child.stdin.write(json.dumps(request).encode())
            child.stdin.close()
            end = time.monotonic() + timeout
            while child.poll() is None and not is_assigned(folder) and time.monotonic() < end:
                time.sleep(POLL_SECONDS)
        finally:
            child.kill()
            child.wait()
        printed.seek(0)
        return printed.read()[-4000:].decode(errors="replace")


def _error(folder: Path, text: str) -> tuple[str, str]:
    """Return the error of a child without a dump, and the traceback of the user's code."""
    found = _read_json(folder / ERROR)
    last = [line for line in text.splitlines() if line.strip()][-1:]
    return found.get("text") or "".join(last) or "The compiler ended without a program", found.get("traceback", "")


def _read_json(path: Path) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found


def programs_of(folder: Path) -> list[Path]:
    """Return the dumps with buffer assignment, the largest program last; small ones compute constants."""
    return sorted(folder.glob(PROGRAM), key=lambda path: path.stat().st_size)


def is_assigned(folder: Path) -> bool:
    """Return whether the compiler has written a whole dump: it writes another file after it, on TPU and on GPU."""
    names = [".".join(path.name.split(".")[:2]) for path in folder.glob(PROGRAM)]
    return any(any(folder.glob(f"{name}.{end}")) for name in names for end in LATER) and _is_whole(
        programs_of(folder)[-1]
    )


def _is_whole(dump: Path) -> bool:
    """Return whether a dump is a message: on a busy machine, a file that XLA writes later may be there first."""
    try:
        return len(HloProto.FromString(dump.read_bytes()).buffer_assignment.buffer_allocations) > 0
    except DecodeError:
        return False
