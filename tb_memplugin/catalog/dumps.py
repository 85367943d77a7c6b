"""XLA dumps: the programs that a listing reads, and the stages of compilation that it skips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tb_memplugin import logdir
from tb_memplugin.catalog.reading import read_once
from tb_memplugin.logdir import HostFile, Stages
from tb_memplugin.model.out_of_memory import DUMP_FLAGS
from tb_memplugin.readers.hlo.reserved import reserved_by_memory
from tb_memplugin.sizes import agree, bytes_text, counted


def skipped_text(stages: Sequence[Stages]) -> str:
    """Return the one line about all skipped stages of some runs; empty where there are none."""
    count = sum(skipped.count for skipped in stages)
    skipped = f"{counted(count, 'stage')} without buffer assignment skipped." if count else ""
    return f"{skipped} {missing_text(stages)}".strip()


def missing_text(stages: Sequence[Stages]) -> str:
    """Return a line about the modules that have no program; empty where there are none."""
    modules = [module for skipped in stages for module in skipped.modules]
    if not modules:
        return ""
    return f"No program of {logdir.listed_names(modules)}: compile to the end, and dump with {DUMP_FLAGS}."


# An eager program compiles every operation, so that a dump may have thousands of modules. Reading one takes 5 ms.
MAX_PROGRAMS = 200


class LeftOut(NamedTuple):
    """Programs of dumps that a listing does not read, since they reserve the least; `bytes`: the most of one."""

    programs: int
    bytes: int

    @property
    def text(self) -> str:
        most = f"Each reserves at most {bytes_text(self.bytes)}; to" if self.bytes else "To"  # unknown of texts alone
        return (
            f"{counted(self.programs, 'smaller program')} of this dump {agree(self.programs, 'is', 'are')} not listed. "
            f"{most} see one, open its *after_optimizations.hlo.pb or .txt."
        )


@read_once(lambda file, error: dict[str, int]())
def reserved(file: HostFile) -> dict[str, int]:
    """Return the bytes that a program reserves in each memory; empty where the file cannot be read."""
    return reserved_by_memory(logdir.read_bytes(file), file.path)


def largest_programs(
    files: Sequence[HostFile], run: str, wanted: Callable[[str], object] | None
) -> tuple[Sequence[HostFile], LeftOut | None]:
    """Return the files without the smallest programs of dumps, where there are more than MAX_PROGRAMS, and these.

    Programs that have a recording with a `wanted` id stay, and those whose ids are unknown before they are read.
    """
    programs = [file for file in files if file.program is not None]
    if len(programs) <= MAX_PROGRAMS:
        return files, None
    size = {file: _size(file) for file in programs}
    ordered = sorted(programs, key=lambda file: (-size[file], -file.size))
    left = {file for file in ordered[MAX_PROGRAMS:] if wanted is None or not _may_be_wanted(file, run, wanted)}
    if not left:
        return files, None
    return [file for file in files if file not in left], LeftOut(len(left), max(size[file] for file in left))


def _may_be_wanted(file: HostFile, run: str, wanted: Callable[[str], object]) -> bool:
    if file.program is None or not (title := file.program.title):
        return True
    memories = reserved(file)  # empty for a module alone, as text
    # As Recording.id has them.
    return not memories or any(wanted("|".join((run, file.host, title, memory))) for memory in memories)


def _size(file: HostFile) -> int:
    """Return the bytes that a program reserves; the size of a remote file, which would have to be fetched."""
    return file.size if logdir.is_remote(file.path) else sum(reserved(file).values())
