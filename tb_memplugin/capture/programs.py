"""What a compiled function will need, before it runs: `jax.jit(f).lower(*shapes).compile()`, and nothing is executed.

The answer comes from the executable and from the buffer assignment that `memory_analysis()` holds. Only what explains
needs the rest of tb_memplugin, and loads it when it is called.
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

MAIN_MEMORY = 0  # XLA's number for the device's main memory, whatever its kind


def compiled(program: Compiled, logdir: str | os.PathLike[str]) -> Path:
    """Writes a run that tb_memplugin and XProf read as a profile, and returns its file.

    The run is `<logdir>/plugins/profile/<time>`, a new one at each call. ValueError where the backend tells neither
    instructions nor buffers.
    """
    data, name = _hlo_proto(program)
    path = _new_run(Path(logdir)) / f"{platform.node() or 'localhost'}.xplane.pb"
    path.write_bytes(_profile(data, name, _program_id(data)))
    return path


def report(program: Compiled) -> str:
    """Prints and returns what is live at the program's peak, by role, model path and source, and what would help.

    ValueError as of `compiled`.
    """
    text = _explained(_largest(_recordings(program)))
    print(text)
    return text


def assert_fits(program: Compiled, limit: int | str) -> None:
    """AssertionError, with the explanation, where the program needs more of the device's main memory than `limit`.

    The limit is in bytes, or a text such as "70GiB". What it needs is all that it reserves: arguments, results,
    temporaries and constants, each donated argument once with its result. ValueError as of `compiled`, and where the
    limit is no size.
    """
    from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
    from tb_memplugin.errors import InputError
    from tb_memplugin.sizes import bytes_text, parse_size

    try:
        most = limit if isinstance(limit, int) else parse_size(limit)
    except InputError as error:
        raise ValueError(str(error)) from None
    for recording in _recordings(program):
        needed = reserved_bytes(recording)
        if recording.program is not None and recording.program.memory_space == MAIN_MEMORY and needed > most:
            raise AssertionError(
                f"{recording.title} needs {bytes_text(needed)} of {recording.memory}, "
                f"{bytes_text(needed - most)} more than {bytes_text(most)}.\n{_explained(recording)}"
            )


def _recordings(program: Compiled) -> list[Recording]:
    from tb_memplugin.readers.hlo import read_hlo

    data, name = _hlo_proto(program)
    return read_hlo(data, source=name)


def _largest(recordings: list[Recording]) -> Recording:
    from tb_memplugin.analysis.usage.live_bytes import peak

    return max(recordings, key=lambda recording: peak(recording).bytes)


def _explained(recording: Recording) -> str:
    from tb_memplugin.views.terminal.explain import explain
    from tb_memplugin.views.terminal.explain_text import lines

    return "\n".join(lines(explain(recording)))


def _hlo_proto(program: Compiled) -> tuple[bytes, str]:
    """A serialized HloProto, and the module's name."""
    executable: Any = program.runtime_executable()
    analysis: Any = program.memory_analysis()
    modules = executable.hlo_modules() if executable is not None else []
    assignment = getattr(analysis, "serialized_buffer_assignment_proto", b"")
    if not modules or not assignment:
        raise ValueError(
            "This backend does not tell where the program's buffers lie: update jaxlib, compile for another backend, "
            "or profile a run of it instead"
        )
    return message(1, modules[0].as_serialized_hlo_module_proto()) + message(3, assignment), modules[0].name


def _new_run(logdir: Path) -> Path:
    """A folder of its own under the runs, named for the time as profiles are."""
    runs, now, number = logdir / "plugins" / "profile", time.strftime("%Y_%m_%d_%H_%M_%S"), 1
    runs.mkdir(parents=True, exist_ok=True)
    while True:
        run = runs / (now if number == 1 else f"{now}_{number}")
        try:
            run.mkdir()
        except FileExistsError:  # two programs compiled within a second, or by two processes
            number += 1
        else:
            return run


def _profile(hlo: bytes, name: str, program_id: int) -> bytes:
    """A serialized XSpace with a metadata plane as the profiler writes it: one event, whose stats are the program."""
    hlo_stat, id_stat = 1, 2
    stats = message(5, number(1, hlo_stat) + message(6, hlo)) + message(5, number(1, id_stat) + number(3, program_id))
    event = number(1, 1) + message(2, f"{name}({program_id})".encode()) + stats
    plane = message(2, b"/host:metadata") + message(4, number(1, 1) + message(2, event))
    for n, stat in ((hlo_stat, b"Hlo Proto"), (id_stat, b"program_id")):
        plane += message(5, number(1, n) + message(2, number(1, n) + message(2, stat)))
    return message(1, plane) + message(4, (platform.node() or "localhost").encode())


def _program_id(hlo: bytes) -> int:
    """The module's own number, `id = 5` of HloModuleProto."""
    modules = (value for n, value in fields(memoryview(hlo)) if n == 1 and isinstance(value, memoryview))
    return next((value for n, value in fields(next(modules)) if n == 5 and isinstance(value, int)), 0)
