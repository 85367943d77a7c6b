"""The programs of an XLA dump folder: one for each module, with the files that describe its target."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tb_memplugin.logdir.files import Entry, HostFile, ProgramFile, Stages, host_file
from tb_memplugin.logdir.names import (
    ProgramName,
    completeness,
    is_remote,
    is_stage,
    is_stage_text,
    module_of,
    names_beside,
    parse_program,
    path_text,
    program_stem,
    texts_beside,
)
from tb_memplugin.model.out_of_memory import DUMP_FLAGS
from tb_memplugin.sizes import counted

TOPOLOGY = "topology.pb"  # in a folder that is named after the module
MAX_NAMED = 5


def dumped_programs(entries: Sequence[Entry]) -> tuple[HostFile, ...]:
    """Return the programs of a folder, in order of compilation, and one entry for stages without buffer assignment."""
    parsed = [(program, entry) for entry in entries if not entry.is_folder and (program := parse_program(entry.name))]
    complete: dict[str, int] = {}
    for _, entry in parsed:
        stem, own = program_stem(entry.name), completeness(entry.name)
        complete[stem] = min(own, complete.get(stem, own))
    parsed = [pair for pair in parsed if completeness(pair[1].name) == complete[program_stem(pair[1].name)]]
    parsed.sort(key=lambda pair: (pair[0].time, pair[0].number, pair[1].name))
    paths = {entry.name: entry.path for entry in entries}
    uses = Counter(title for program, _ in parsed for title in {*program.titles})
    files = [_program_file(program, entry, paths, uses) for program, entry in parsed]
    return (*files, *_other_stages(entries, [entry.name for _, entry in parsed]))


def dumped_file(path: str) -> HostFile:
    """Describe a single local file, with the files of its XLA dump beside it. InputError where it cannot be opened."""
    file, (folder, name) = host_file(path), os.path.split(path)
    if (program := parse_program(name)) is not None:
        names = (*names_beside(program.prefix, name), *texts_beside(name))
        beside = (os.path.join(folder, other) for other in names)
        paths = {os.path.basename(other): other for other in beside if os.path.isfile(other)}
        if os.path.isdir(of_module := os.path.join(folder, program.prefix)):
            paths[program.prefix] = of_module
        return _program_file(program, Entry(name, path, False, file.size, file.stamp, file.modified_ns), paths, {})
    if not is_stage(name) and not is_stage_text(name):
        return file
    others = sorted(os.listdir(folder or os.curdir), key=lambda other: (completeness(other), other))
    module = module_of(name)
    programs = (other for other in others if module is not None and module_of(other) == module and parse_program(other))
    if (program_of_module := next(programs, None)) is None:
        return file._replace(unreadable=without_program([name], is_stage(name)))
    return file._replace(unreadable=f"a stage of compilation without buffer assignment: open {program_of_module}")


def _program_file(program: ProgramName, entry: Entry, paths: Mapping[str, str], uses: Mapping[str, int]) -> HostFile:
    """Describe a program. Its title is the shortest that is of no other one; `uses` counts the files of each title."""
    title = next((title for title in program.titles if uses.get(title, 1) == 1), entry.name)
    beside = [paths[name] for name in names_beside(program.prefix, entry.name) if name in paths]
    if program.prefix in paths and not is_remote(entry.path):
        beside.append(os.path.join(paths[program.prefix], TOPOLOGY))
    texts = tuple(paths[name] for name in texts_beside(entry.name) if name in paths)
    described = ProgramFile(path_text(title), path_text(program.module), tuple(beside), texts)
    return HostFile(entry.path, "", entry.size, entry.stamp, described, modified_ns=entry.modified_ns, top=entry.top)


def _other_stages(entries: Sequence[Entry], programs: Iterable[str]) -> tuple[HostFile, ...]:
    """Return one entry for all stages without buffer assignment; none where a folder has none."""
    found = {numbered[0] for name in programs if (numbered := module_of(name))}
    names = [entry.name for entry in entries if not entry.is_folder and is_stage(entry.name)]
    texts = [entry.name for entry in entries if not entry.is_folder and is_stage_text(entry.name)]
    missing: dict[str, str] = {}
    first = ""
    for file in (*names, *texts):
        unnumbered = file.partition(".")[0]
        key, module = module_of(file) or (unnumbered, unnumbered)
        if key not in found:
            missing.setdefault(key, path_text(module))
            first = first or file
    if not names and not missing:
        return ()
    path = next(entry.path for entry in entries if entry.name == (first or names[0]))
    stages = Stages(len(names), tuple(missing.values()), path_text(path), numbered=True)
    text = f"{counted(stages.count, 'stage')}, {counted(len(missing), 'module')}"
    return (HostFile(path, "", 0, text, stages=stages),)


def without_program(names: Sequence[str], as_proto: bool) -> str:
    """Return the reason why modules have no program, and the remedy."""
    listed = listed_names(names)
    if as_proto:
        return (
            f"{listed}: dumped only at stages of compilation that have no buffer assignment: compile to the end, so "
            f"that XLA writes *after_optimizations.hlo.pb, and dump with {DUMP_FLAGS}"
        )
    return (
        f"{listed}: dumped as text before it was compiled: keep *after_optimizations-buffer-assignment.txt and "
        f"*after_optimizations.txt, or dump with {DUMP_FLAGS}"
    )


def listed_names(names: Sequence[str]) -> str:
    """Return the first names in words, and the number of the others."""
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"
