"""Programs that are files of their own: their modules and titles, so that files with equal modules stay apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor

from tb_memplugin import logdir
from tb_memplugin.catalog.reading import read_once
from tb_memplugin.logdir import HostFile, ProgramFile
from tb_memplugin.logdir.names import HLO_PROTO
from tb_memplugin.readers.hlo.reserved import HEAD_BYTES, module_name

KEY = re.compile(r"(.+)\(\d+\)")  # XProf names a file after its program's key
AT_ONCE = 16  # remote files, of which the beginning is read: that is mostly waiting


def titled(files: Sequence[HostFile]) -> Sequence[HostFile]:
    """Return a run's files, with the module of each program, and a title where others have a module of that name.

    A title contains what is special in the file's name, so that it is the same at each visit.
    """
    # Programs that are not of an XLA dump, and whose titles are not known yet.
    single = [file for file in files if not file.program and not file.stages and logdir.is_program(file.path)]
    if not single:
        return files
    if logdir.is_remote(single[0].path):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            modules = list(pool.map(_module, single))
    else:
        modules = list(map(_module, single))
    found = dict(zip(single, modules, strict=True))
    dumped = [file.program for file in files if file.program is not None]
    uses = Counter([*modules, *(program.module for program in dumped)])
    taken = {program.title for program in dumped}
    titles: dict[HostFile, str] = {}
    for module in dict.fromkeys(modules):
        if module and uses[module] > 1:
            titles |= _titles(module, [file for file in single if found[file] == module], taken)
    return [
        file._replace(program=ProgramFile(titles.get(file, ""), found[file])) if file in found else file
        for file in files
    ]


def _titles(module: str, files: Sequence[HostFile], taken: Set[str]) -> dict[HostFile, str]:
    """Return a title for each file with a module of this name, as short as all of them can be."""
    names = [logdir.path_text(file.path.rpartition("/")[2]) for file in files]
    stems = [_stem(name) for name in names]
    parts = [stem.replace(module, "", 1).strip("._- ") for stem in stems]
    for chosen in (parts, stems):
        titles = [
            stem if KEY.fullmatch(stem) else f"{module} ({part or name})"
            for part, stem, name in zip(chosen, stems, names, strict=True)
        ]
        if len(set(titles)) == len(titles) and taken.isdisjoint(titles):
            return dict(zip(files, titles, strict=True))
    return {file: f"{module} ({name})" for file, name in zip(files, names, strict=True)}


def _stem(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in HLO_PROTO if name.endswith(suffix)), name)


@read_once(lambda file, error: "")
def _module(file: HostFile) -> str:
    """Return the name of a program's module; empty where it cannot be read."""
    named = KEY.fullmatch(_stem(logdir.path_text(file.path.rpartition("/")[2])))
    return named[1] if named else module_name(bytes(logdir.read_bytes(file, HEAD_BYTES)))


def files_of_modules(files: Sequence[HostFile], modules: Iterable[str]) -> list[HostFile]:
    """Return the programs compiled from modules of these names."""
    wanted = set(modules)
    return [file for file in titled(files) if file.program is not None and file.program.module in wanted]
