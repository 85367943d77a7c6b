"""Programs of XLA dumps: those that a listing reads, without reading them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from tb_memplugin import logdir
from tb_memplugin.errors import InputError, ReadError
from tb_memplugin.logdir import HostFile
from tb_memplugin.sizes import agree, bytes_text, counted

# An eager program compiles every operation, so that a dump may have thousands of modules. Reading one takes 5 ms.
MAX_PROGRAMS = 200


class LeftOut(NamedTuple):
    """Programs of dumps that a listing does not read, since they reserve the least; `bytes`: the most of one."""

    programs: int
    bytes: int

    @property
    def text(self) -> str:
        return (
            f"{counted(self.programs, 'smaller program')} of this dump {agree(self.programs, 'is', 'are')} not listed. "
            f"Each reserves at most {bytes_text(self.bytes)}; to see one, open its *after_optimizations.hlo.pb."
        )


def reserved(file: HostFile) -> dict[str, int]:
    """Return the bytes that a program reserves in each memory; empty where the file cannot be read."""
    try:
        return _reserved(file)
    except ReadError:  # not cached
        return {}


@lru_cache(maxsize=50_000)
def _reserved(file: HostFile) -> dict[str, int]:
    from tb_memplugin.readers.xla_dump.reserved import reserved_by_memory

    try:
        return reserved_by_memory(logdir.read_bytes(file), file.path)
    except ReadError:
        raise
    except InputError:
        return {}


def largest_programs(
    files: Sequence[HostFile], run: str, wanted: Callable[[str], object] | None = None
) -> tuple[Sequence[HostFile], LeftOut | None]:
    """Return the files without the smallest programs of dumps, where there are more than MAX_PROGRAMS, and these.

    Programs that have a recording with a `wanted` id stay, and those whose ids are unknown before they are read.
    """
    programs = [file for file in files if file.dumped is not None or _is_single_program(file)]
    if len(programs) <= MAX_PROGRAMS:
        return files, None
    size = {file: _size(file) for file in programs}
    ordered = sorted(programs, key=lambda file: -size[file])
    left = {file for file in ordered[MAX_PROGRAMS:] if wanted is None or not _may_be_wanted(file, run, wanted)}
    if not left:
        return files, None
    return [file for file in files if file not in left], LeftOut(len(left), max(size[file] for file in left))


def _is_single_program(file: HostFile) -> bool:
    """Return whether a file is a program that is not of an XLA dump, by its name."""
    return file.stages is None and logdir.is_program(file.path)


def _may_be_wanted(file: HostFile, run: str, wanted: Callable[[str], object]) -> bool:
    return file.dumped is None or any(map(wanted, _ids(file, run)))


def _ids(file: HostFile, run: str) -> list[str]:
    """Return the ids of a program's recordings, as Recording.id has them, without reading it."""
    title = file.dumped.title if file.dumped else ""
    return ["|".join((run, file.host, title, memory)) for memory in reserved(file)]


def files_of_modules(files: Sequence[HostFile], modules: Collection[str]) -> list[HostFile]:
    """Return the programs compiled from modules of these names, by file names in dumps and by contents elsewhere.

    Of a run with very many single programs only the first are looked into.
    """
    single = [file for file in files if file.dumped is None and _is_single_program(file)][:MAX_PROGRAMS]
    named = [file for file in files if file.dumped is not None and file.dumped.module in modules]
    return [*named, *(file for file in single if _module(file) in modules)]


def _module(file: HostFile) -> str:
    try:
        return _module_name(file)
    except ReadError:  # not cached
        return ""


@lru_cache(maxsize=50_000)
def _module_name(file: HostFile) -> str:
    from tb_memplugin.readers.xla_dump.reserved import module_name

    try:
        return module_name(logdir.read_bytes(file), file.path)
    except ReadError:
        raise
    except InputError:
        return ""


def _size(file: HostFile) -> int:
    """Return the bytes that a program reserves; the size of a remote file, which would have to be fetched."""
    return file.size if logdir.is_remote(file.path) else sum(reserved(file).values())
