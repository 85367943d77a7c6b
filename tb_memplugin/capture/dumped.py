"""Compiling with XLA's dump, which contains the buffers of TPU and GPU programs, and of those that were refused.

program = capture.compile(jax.jit(step).lower(*shapes))
program.report()
program(*arguments)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jax.errors import JaxRuntimeError
from jax.stages import Compiled, Lowered

from tb_memplugin.capture.guard import Quietly
from tb_memplugin.capture.new_files import LogDir, is_remote, join, logdir_text, replace_file

PROGRAMS = ("*after_optimizations.hlo.pb", "*after_optimizations.hlo.pb.gz")
TARGETS = ("target_arguments.txt", "target_arguments.pb", "gpu_target_config.pbtxt", "topology.pb")
REFUSED = "RESOURCE_EXHAUSTED"


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

    def report(self) -> str:
        """Print and return an explanation of the program's peak."""
        from tb_memplugin.capture.programs import report

        return report(self)


class CompileOutOfMemory(JaxRuntimeError):  # type: ignore[misc]  # untyped in JAX
    """A program that the compiler refused, since it needs too much memory. The compiler's error is the cause."""

    def __init__(self, text: str, dumped: ProgramOfDump) -> None:
        super().__init__(text)
        self.dumped = dumped

    def report(self) -> str:
        """Print and return an explanation of the program's peak."""
        from tb_memplugin.capture.programs import report

        return report(self)


def compile(
    lowered: Lowered,
    dump_to: LogDir | None = None,
    compiler_options: dict[str, Any] | None = None,
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
            refused = written() if REFUSED in str(error) else None
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
                with Quietly(f"the dump could not be written to {dump_to}"):
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
            f"No program in {given}: dump with XLA_FLAGS='--xla_dump_to={given} --xla_dump_hlo_as_proto', "
            "so that XLA writes *after_optimizations.hlo.pb"
        )
    return found


def _programs(folder: Path) -> list[Path]:
    return [path for pattern in PROGRAMS for path in folder.glob(pattern)]


def _largest(programs: list[Path]) -> ProgramOfDump | None:
    """Return the program that reserves the most; the smaller ones of one compile compute constants."""
    from tb_memplugin.readers.xla_dump.reserved import reserved_by_memory

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
    from tb_memplugin.capture.programs import explanation

    try:
        return f"{error}\n\nThe program that was refused:\n{explanation(refused)}"
    except Exception:  # the compiler's error is what matters
        return str(error)
