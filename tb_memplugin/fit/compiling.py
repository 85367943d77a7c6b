"""Compiling a candidate in a process of its own, which ends once its memory is assigned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from google.protobuf.message import DecodeError

from tb_memplugin.analysis.replay.compiler_recomputation import compiler_recomputation
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.errors import InputError
from tb_memplugin.fit.candidate import Candidate, Outcome
from tb_memplugin.fit.targets import ENVIRONMENT
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
    seconds = time.monotonic() - begun
    dumps = programs_of(folder)
    if not dumps:
        error, traceback = _error(folder, text)
        return Outcome(candidate, seconds, error=error, traceback=traceback, folder=str(folder))
    try:
        recordings = read_hlo(dumps[-1].read_bytes(), source=str(dumps[-1]))
    except InputError as problem:
        return Outcome(candidate, seconds, error=str(problem), folder=str(folder))
    main = next(recording for recording in recordings if recording.is_main_memory)
    if main.program is not None and main.program.backend is not BACKENDS[candidate.target.platform]:
        text = (
            f"Compiled for {main.program.backend}: shardings of the shapes must be on `devices`, not on jax.devices()"
        )
        return Outcome(candidate, seconds, error=text, folder=str(folder))
    return Outcome(
        candidate,
        seconds,
        reserved=reserved_bytes(main),
        peak=peak(main).bytes,
        repeated=compiler_recomputation(main).operations,
        folder=str(folder),
    )


def _run(candidate: Candidate, folder: Path, timeout: float) -> str:
    """Run the child until its dump is complete, and return what it printed."""
    request = {"step": candidate.step, "target": str(candidate.target), "knobs": dict(candidate.knobs)}
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
    try:
        found = json.loads((folder / "error.json").read_text())
    except (OSError, ValueError):
        last = [line for line in text.splitlines() if line.strip()][-1:]
        return "".join(last) or "The compiler ended without a program", ""
    return str(found["text"]), str(found["traceback"])


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
