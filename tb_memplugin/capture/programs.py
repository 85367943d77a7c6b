"""The memory of compiled JAX functions before they run, from `jax.jit(f).lower(*shapes).compile()`.

The figures come from the executable and from the buffer assignment in `memory_analysis()`; nothing is executed. The
rest of tb_memplugin is imported only by functions that explain.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jax.stages import Compiled

from tb_memplugin.capture.wire import fields, message, number

if TYPE_CHECKING:
    from tb_memplugin.model.recording import Recording

MAIN_MEMORY = 0  # XLA's memory space of the device's main memory, on every backend


def compiled(program: Compiled, logdir: str | os.PathLike[str]) -> Path:
    """Write the program as a run that tb_memplugin and XProf can open, and return the path of its file.

    Each call writes a new run, `<logdir>/plugins/profile/<time>`. ValueError where the backend provides no instructions
    or no buffer assignment.
    """
    data, name = _hlo_proto(program)
    path = _new_run(Path(logdir)) / f"{platform.node() or 'localhost'}.xplane.pb"
    path.write_bytes(_profile(data, name, _program_id(data)))
    return path


def report(program: Compiled) -> str:
    """Print and return an explanation of the program's peak, as `tb-memplugin explain` does.

    ValueError as for `compiled`.
    """
    text = _explain(_largest(_recordings(program)))
    print(text)
    return text


def assert_fits(program: Compiled, limit: int | str) -> None:
    """Raise AssertionError, with an explanation, where the program needs more device memory than `limit`.

    The limit is in bytes, or a text such as "70GiB". The need is all the main memory that the program reserves:
    arguments, results, temporaries and constants; a donated argument counts once, with its result. ValueError as for
    `compiled`, and for a limit that is not a size.
    """
    from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
    from tb_memplugin.errors import InputError
    from tb_memplugin.sizes import bytes_text, parse_size

    try:
        max_bytes = limit if isinstance(limit, int) else parse_size(limit)
    except InputError as error:
        raise ValueError(str(error)) from None
    for recording in _recordings(program):
        needed = reserved_bytes(recording)
        if recording.program is not None and recording.program.memory_space == MAIN_MEMORY and needed > max_bytes:
            raise AssertionError(
                f"{recording.title} needs {bytes_text(needed)} of {recording.memory}, "
                f"{bytes_text(needed - max_bytes)} more than {bytes_text(max_bytes)}.\n{_explain(recording)}"
            )


def _recordings(program: Compiled) -> list[Recording]:
    from tb_memplugin.readers.hlo import read_hlo

    data, name = _hlo_proto(program)
    return read_hlo(data, source=name)


def _largest(recordings: list[Recording]) -> Recording:
    from tb_memplugin.analysis.usage.live_bytes import peak

    return max(recordings, key=lambda recording: peak(recording).bytes)


def _explain(recording: Recording) -> str:
    from tb_memplugin.views.terminal.explain import explain
    from tb_memplugin.views.terminal.explain_text import lines

    return "\n".join(lines(explain(recording)))


def _hlo_proto(program: Compiled) -> tuple[bytes, str]:
    """Return a serialized HloProto and the module's name."""
    executable: Any = program.runtime_executable()
    analysis: Any = program.memory_analysis()
    modules = executable.hlo_modules() if executable is not None else []
    assignment = getattr(analysis, "serialized_buffer_assignment_proto", b"")
    if not modules or not assignment:
        raise ValueError(
            "This backend provides no buffer assignment of the program: update jaxlib, compile for another backend, "
            "or profile a run of the program instead"
        )
    return message(1, modules[0].as_serialized_hlo_module_proto()) + message(3, assignment), modules[0].name


def _new_run(logdir: Path) -> Path:
    """Make a new folder beside the runs, named after the time like those of profiles."""
    runs, now, number = logdir / "plugins" / "profile", time.strftime("%Y_%m_%d_%H_%M_%S"), 1
    runs.mkdir(parents=True, exist_ok=True)
    while True:
        run = runs / (now if number == 1 else f"{now}_{number}")
        try:
            run.mkdir()
        except FileExistsError:  # another program, or another process, wrote a run in the same second
            number += 1
        else:
            return run


def _profile(hlo: bytes, name: str, program_id: int) -> bytes:
    """Return a serialized XSpace like the profiler's: a metadata plane with one event, whose stats hold the program."""
    hlo_stat, id_stat = 1, 2
    stats = message(5, number(1, hlo_stat) + message(6, hlo)) + message(5, number(1, id_stat) + number(3, program_id))
    event = number(1, 1) + message(2, f"{name}({program_id})".encode()) + stats
    plane = message(2, b"/host:metadata") + message(4, number(1, 1) + message(2, event))
    for n, stat in ((hlo_stat, b"Hlo Proto"), (id_stat, b"program_id")):
        plane += message(5, number(1, n) + message(2, number(1, n) + message(2, stat)))
    return message(1, plane) + message(4, (platform.node() or "localhost").encode())


def _program_id(hlo: bytes) -> int:
    """Return the module's id, field 5 of HloModuleProto."""
    modules = (value for n, value in fields(memoryview(hlo)) if n == 1 and isinstance(value, memoryview))
    return next((value for n, value in fields(next(modules)) if n == 5 and isinstance(value, int)), 0)
