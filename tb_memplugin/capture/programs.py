"""The memory of compiled JAX functions before they run, and of those that the compiler refused. Nothing is executed.

    program = capture.compile(jax.jit(step).lower(*shapes))
    program.report()
    program(*arguments)

The figures come from XLA's dump, which `capture.compile` makes and which contains the buffers of TPU and GPU programs,
or from the executable and the buffer assignment in `memory_analysis()`, which TPU and GPU executables lack. The rest of
tb_memplugin is imported only by functions that explain.
"""

from __future__ import annotations

import gzip
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jax.errors import JaxRuntimeError
from jax.stages import Compiled, Lowered

from tb_memplugin.capture.guard import describe, quietly
from tb_memplugin.capture.new_files import (
    LogDir,
    create_file,
    create_folder,
    is_remote,
    join,
    logdir_text,
    remove_empty_folder,
    replace_file,
)
from tb_memplugin.capture.program_report import ProgramReport
from tb_memplugin.capture.wire import fields, message, number
from tb_memplugin.model.out_of_memory import DUMP_FLAGS, RESOURCE_EXHAUSTED

if TYPE_CHECKING:
    from tb_memplugin.model.recording import Recording

PROGRAMS = ("*after_optimizations.hlo.pb", "*after_optimizations.hlo.pb.gz")
TARGETS = ("target_arguments.txt", "target_arguments.pb", "gpu_target_config.pbtxt", "topology.pb")


@dataclass(frozen=True)
class ProgramOfDump:
    """A program of an XLA dump: its file's name, its HloProto, and the files that name its chip."""

    name: str
    hlo_proto: bytes = field(repr=False)
    target: dict[str, bytes] = field(repr=False)


class CompiledProgram:
    """A compiled function with the memory that it needs: call it, or pass it to `report` and `assert_fits`."""

    def __init__(self, compiled: Compiled, dumped: ProgramOfDump | None) -> None:
        self.compiled = compiled
        self.dumped = dumped

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.compiled(*args, **kwargs)

    def report(self) -> ProgramReport:
        """Print and return an explanation of the program's peak."""
        return report(self)

    def _repr_html_(self) -> str:
        return explanation(self)._repr_html_()


class CompileOutOfMemory(JaxRuntimeError):  # type: ignore[misc]  # untyped in JAX
    """A program that the compiler refused, since it needs too much memory. The compiler's error is the cause."""

    def __init__(self, text: str, dumped: ProgramOfDump) -> None:
        super().__init__(text)
        self.dumped = dumped

    def report(self) -> ProgramReport:
        """Print and return an explanation of the program's peak."""
        return report(self)


def compile(
    lowered: Lowered, dump_to: LogDir | None = None, compiler_options: dict[str, Any] | None = None
) -> CompiledProgram:
    """Compile a lowered function, and return it with its memory: `capture.compile(jax.jit(f).lower(*shapes))`.

    XLA's dump goes to the folder `dump_to`, by default to a temporary one; of a URL that fsspec supports, after the
    compilation, and a failure of that is logged. Raises CompileOutOfMemory, which contains the program, where the
    compiler refuses it for its memory, and other errors of the compiler as they are.
    """
    with _dump_folder(logdir_text(dump_to) if dump_to is not None else "") as folder:
        before = {path: path.stat().st_mtime_ns for path in _programs(folder)}
        options = {**(compiler_options or {}), "xla_dump_to": str(folder), "xla_dump_hlo_as_proto": True}

        def written() -> ProgramOfDump | None:
            new = [path for path in _programs(folder) if before.get(path) != path.stat().st_mtime_ns]
            return _largest(new)

        try:
            compiled = lowered.compile(compiler_options=options)
        except JaxRuntimeError as error:
            refused = written() if RESOURCE_EXHAUSTED in str(error) else None
            if refused is None:
                raise
            raise CompileOutOfMemory(_text(error, refused), refused) from error
        return CompiledProgram(compiled, written())


@contextmanager
def _dump_folder(dump_to: str) -> Iterator[Path]:
    """Yield the local folder that XLA dumps to. Afterwards its files are uploaded to `dump_to`, if that is remote."""
    if dump_to and not is_remote(dump_to):
        yield Path(dump_to)
        return
    with tempfile.TemporaryDirectory(prefix="tb_memplugin_") as temporary:
        try:
            yield Path(temporary)
        finally:
            for file in sorted(Path(temporary).rglob("*")) if dump_to else ():
                with quietly(f"the dump could not be written to {dump_to}"):
                    if file.is_file():
                        replace_file(join(dump_to, *file.relative_to(temporary).parts), file.read_bytes())


def read_dump(path: str | os.PathLike[str]) -> ProgramOfDump:
    """Read a program of a dump: a file, or the largest one of a folder. ValueError where there is none."""
    if is_remote(os.fspath(path)):
        raise ValueError(f"{path} is remote: copy the dump, and give its folder on this machine")
    given = Path(path)
    found = _largest(_programs(given) if given.is_dir() else [given])
    if found is None:
        raise ValueError(
            f"No program in {given}: dump with {DUMP_FLAGS.replace('FOLDER', str(given))}, "
            "so that XLA writes *after_optimizations.hlo.pb"
        )
    return found


def _programs(folder: Path) -> list[Path]:
    return [path for pattern in PROGRAMS for path in folder.glob(pattern)]


def _largest(programs: list[Path]) -> ProgramOfDump | None:
    """Return the program that reserves the most; the smaller ones of one compile compute constants."""
    from tb_memplugin.readers.hlo.reserved import reserved_by_memory

    def reserved(path: Path) -> int:
        return sum(reserved_by_memory(path.read_bytes(), str(path)).values())

    path = max(programs, key=reserved, default=None) if len(programs) > 1 else next(iter(programs), None)
    if path is None:
        return None
    beside = [file for name in TARGETS for file in path.parent.glob(f"{path.name.split('.')[0]}.*{name}")]
    beside += path.parent.glob(f"{path.name.split('.')[0]}.*/{TARGETS[-1]}")
    return ProgramOfDump(path.name, path.read_bytes(), {file.name: file.read_bytes() for file in beside})


def _text(error: JaxRuntimeError, refused: ProgramOfDump) -> str:
    """Return the compiler's text and the explanation of the refused program."""
    try:
        return f"{error}\n\nThe program that was refused:\n{explanation(refused)}"
    except Exception:  # the compiler's error is what matters
        return str(error)


# A program can be given as a compiled function, one that the compiler refused, or a file or folder of a dump.
HasProgram = Compiled | CompiledProgram | CompileOutOfMemory | ProgramOfDump | str | os.PathLike[str]


class BudgetExceeded(AssertionError):
    """A program that needs more memory than it may."""


def compiled(program: HasProgram, logdir: LogDir) -> Path | str:
    """Write the program as a run that tb_memplugin and XProf can open, and return the path of its file.

    Each call writes a new run, `<logdir>/plugins/profile/<time>`; `logdir` is local, or a URL that fsspec supports: the
    path is then a URL, as text. `program` is what `capture.compile` returns or raises, a compiled function, or a file
    or folder of an XLA dump. ValueError where the backend provides no instructions or no buffer assignment, or where
    the logdir is none. OSError where the file cannot be written; then there is none.
    """
    data, name = _hlo_proto(program)
    profile = _profile(data, name)
    where = logdir_text(logdir)
    run = ""
    try:
        run = create_folder(join(where, "plugins", "profile"), time.strftime("%Y_%m_%d_%H_%M_%S"))
        path = create_file(join(run, f"{platform.node() or 'localhost'}.xplane.pb"), profile)
    except Exception as error:  # remote stores raise errors of many types
        if run:
            remove_empty_folder(run)
        text = f"The program could not be written to {where}: {describe(error)}"
        number = error.errno if isinstance(error, OSError) else None
        raise (OSError(text) if number is None else OSError(number, text)) from error
    return path if is_remote(path) else Path(path)


def report(program: HasProgram) -> ProgramReport:
    """Print and return an explanation of the program's peak, as `tb-memplugin explain` does; notebooks show a picture.

    ValueError as for `compiled`.
    """
    found = explanation(program)
    found.show()
    return found


def explanation(program: HasProgram) -> ProgramReport:
    """Return an explanation of the program's peak in the device's main memory."""
    return ProgramReport(main_memory(program))


def assert_fits(program: HasProgram, limit: int | str | None = None) -> None:
    """Raise AssertionError, with an explanation, where the program needs more device memory than `limit`.

    The limit is in bytes, or a text such as "70GiB"; without one it is what the compiler allows on the chip that the
    program was compiled for. The need is all the main memory that the program reserves: arguments, results,
    temporaries and constants; a donated argument counts once, with its result. ValueError as for `compiled`, for a
    limit that is not a size, and without a limit for an unknown chip.
    """
    from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
    from tb_memplugin.errors import InputError
    from tb_memplugin.sizes import bytes_text, parse_size

    try:
        max_bytes = parse_size(limit) if isinstance(limit, str) else limit
    except InputError as error:
        raise ValueError(str(error)) from None
    for recording in _recordings(program):
        if not recording.is_main_memory:
            continue
        needed, allowed = reserved_bytes(recording), recording.capacity if max_bytes is None else max_bytes
        if allowed is None:
            raise ValueError("The memory of the device is unknown: give a limit, such as '70GiB'")
        if needed > allowed:
            raise BudgetExceeded(
                f"{recording.title} needs {bytes_text(needed)} of {recording.memory}, "
                f"{bytes_text(needed - allowed)} more than {bytes_text(allowed)}.\n{ProgramReport(recording)}"
            )


def _recordings(program: HasProgram) -> list[Recording]:
    from tb_memplugin.model.accelerators import with_chip
    from tb_memplugin.readers.hlo import read_hlo
    from tb_memplugin.readers.xla_dump import read_target

    dumped = _dumped(program)
    data, name = _hlo_proto(program if dumped is None else dumped)
    target = read_target(dumped.target.items()) if dumped is not None else None
    found = read_hlo(data, source=name)
    return with_chip(found, *target) if target is not None else found


def main_memory(program: HasProgram) -> Recording:
    """Return the recording of a program's memory on the device. ValueError as for `compiled`."""
    found = _recordings(program)
    return next((recording for recording in found if recording.is_main_memory), found[0])


def _dumped(program: HasProgram) -> ProgramOfDump | None:
    if isinstance(program, (str, os.PathLike)):
        return read_dump(program)
    return program if isinstance(program, ProgramOfDump) else getattr(program, "dumped", None)


def _hlo_proto(program: HasProgram) -> tuple[bytes, str]:
    """Return a serialized HloProto and the module's name."""
    if (dumped := _dumped(program)) is not None:
        data = gzip.decompress(dumped.hlo_proto) if dumped.name.endswith(".gz") else dumped.hlo_proto
        return data, _module_name(data)
    executable: Any = program.compiled if isinstance(program, CompiledProgram) else program
    runtime, analysis = executable.runtime_executable(), executable.memory_analysis()
    modules = runtime.hlo_modules() if runtime is not None else []
    assignment = getattr(analysis, "serialized_buffer_assignment_proto", b"")
    if not modules or not assignment:
        raise ValueError(
            "This backend provides no buffer assignment of the program: compile with capture.compile(lowered), which "
            "reads XLA's dump, or profile a run of the program instead"
        )
    return message(1, modules[0].as_serialized_hlo_module_proto()) + message(3, assignment), modules[0].name


def _profile(hlo: bytes, name: str) -> bytes:
    """Return a serialized XSpace like the profiler's: a metadata plane with one event, whose stats hold the program."""
    # The module's id is field 5 of HloModuleProto.
    program_id = next((value for n, value in _module_fields(hlo) if n == 5 and isinstance(value, int)), 0)
    hlo_stat, id_stat = 1, 2
    stats = message(5, number(1, hlo_stat) + message(6, hlo)) + message(5, number(1, id_stat) + number(3, program_id))
    event = number(1, 1) + message(2, f"{name}({program_id})".encode()) + stats
    plane = message(2, b"/host:metadata") + message(4, number(1, 1) + message(2, event))
    for n, stat in ((hlo_stat, b"Hlo Proto"), (id_stat, b"program_id")):
        plane += message(5, number(1, n) + message(2, number(1, n) + message(2, stat)))
    return message(1, plane) + message(4, (platform.node() or "localhost").encode())


def _module_name(hlo: bytes) -> str:
    """Return the module's name, field 1 of HloModuleProto."""
    names = (value for n, value in _module_fields(hlo) if n == 1 and isinstance(value, memoryview))
    return bytes(next(names, b"program")).decode("utf-8", "replace")


def _module_fields(hlo: bytes) -> Iterator[tuple[int, int | memoryview]]:
    modules = (value for n, value in fields(memoryview(hlo)) if n == 1 and isinstance(value, memoryview))
    return fields(next(modules, memoryview(b"")))
