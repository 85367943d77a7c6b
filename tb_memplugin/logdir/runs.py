"""The search for runs in a logdir.

A run is a folder `<logdir>/<any>/plugins/profile/<session>/` with `<host>.xplane.pb` files, as jax.profiler writes
them, or any other folder with an XLA dump, a compiled program or standalone files, such as `memory1.prof`.
"""

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tb_memplugin.errors import InputError
from tb_memplugin.formats import format_of
from tb_memplugin.logdir.dumps import dumped_programs
from tb_memplugin.logdir.files import Entry, HostFile
from tb_memplugin.logdir.folders import links_out, list_folder, open_logdir
from tb_memplugin.logdir.names import (
    HLO_PROTO,
    NO_MODULE,
    STANDALONE,
    XPLANE,
    host_name,
    is_dump_file,
    module_of,
    parse_program,
    path_text,
)
from tb_memplugin.model.fit import RECORD
from tb_memplugin.numbered_names import natural_key

# A logdir beside checkpoints or a data set may have millions of folders, and TensorBoard searches it on every page
# load. The search is breadth-first, so that the limit cuts off the deepest folders. Folders that jax.profiler makes,
# three for each run, do not count, and come first.
MAX_FOLDERS = 50_000
PLUGINS, PROFILE = "plugins", "profile"
# Before the only question is whether there is a run, a remote logdir is not listed as a whole.
FIRST_FOLDERS = 50
MAX_LINKS = 3  # in a text


class Run(NamedTuple):
    """One session, named as in XProf: `<TensorBoard run>/<session>`, or `<session>` at the root of the logdir."""

    name: str
    files: tuple[HostFile, ...]
    folder: str
    root: str  # the logdir
    record: HostFile | None = None  # of a fit's candidate; one that was not compiled has no other file

    @property
    def modified_ns(self) -> int:
        """The modification time of its newest file, in nanoseconds since 1970; 0 where it is unknown."""
        files = self.files or ((self.record,) if self.record else ())
        return max((file.modified_ns for file in files), default=0)


def find_runs(root: str) -> list[Run]:
    """Return every run of a logdir, newest first. InputError where the logdir is missing or contains no run."""
    runs = [run for run in find_all(root) if run.files]
    if not runs:
        raise no_runs(root)
    return runs


def no_runs(root: str) -> InputError:
    """Return the error of a logdir that contains no run."""
    links = links_text(root)
    return InputError(
        "No profile found",
        root,
        "looked for plugins/profile/<session>/<host>.xplane.pb, which jax.profiler.trace(logdir) writes, and for "
        "XLA dumps (*after_optimizations.hlo.pb), device profiles (*.prof) and PyTorch snapshots (*.pickle)"
        f"{links and '. '}{links.removesuffix('.')}",
    )


def links_text(root: str, runs: Iterable[Run] = ()) -> str:
    """Return a sentence about linked folders, in a logdir and beside its runs, that lead out of it; may be empty."""
    links = links_out(root, {os.path.dirname(run.folder) for run in runs if run.root == root})
    if not links:
        return ""
    more = f" and {len(links) - MAX_LINKS:,} more" if len(links) > MAX_LINKS else ""
    named = ", ".join(path_text(path) for path in links[:MAX_LINKS])
    return f"Linked folders that lead out of the logdir are not read: {named}{more}. Give their targets as logdirs."


def find_all(root: str) -> list[Run]:
    """Return every run, and every folder with the record of a fit alone, newest first. May return none."""
    return newest_first(_named_apart(list(_search(root))))


def _named_apart(runs: list[Run]) -> Iterator[Run]:
    """Yield runs with distinct names: sessions have those that XProf gives them, other folders yield."""
    uses = Counter(run.name for run in runs)
    for run in runs:
        folder, name = os.path.split(run.folder)
        stays = uses[run.name] == 1 or folder.replace(os.sep, "/").endswith(f"{PLUGINS}/{PROFILE}")
        yield run if stays else run._replace(name=path_text(f"{os.path.basename(folder)}/./{name}"))


def newest_first(runs: Iterable[Run]) -> list[Run]:
    """Return runs by the modification time of their files, and last name first where that is equal or unknown.

    Names are often dates.
    """
    return sorted(runs, key=lambda run: (run.modified_ns, run.name), reverse=True)


def has_runs(root: str) -> bool:
    """Return whether a logdir contains a run. Stops at the first one, and never raises."""
    try:
        first = any(True for _ in _search(root, recursive=False, max_folders=FIRST_FOLDERS))
        return first or any(True for _ in _search(root))
    except InputError:
        return False


def list_again(run: Run) -> Run | None:
    """Return the run with its folder's present files, without a search of the logdir; None if none are left."""
    files = _profiles(list_folder(run.root, run.folder))
    return run._replace(files=files) if files else None


def _search(root: str, *, recursive: bool = True, max_folders: int | None = None) -> Iterator[Run]:
    """Yield the runs of a logdir. `recursive`: list a remote logdir at once, where its store can."""
    top, list_folder = open_logdir(root, recursive=recursive)
    folders, left = deque([top]), MAX_FOLDERS if max_folders is None else max_folders
    while folders and left:
        folder = folders.popleft()
        entries = list_folder(folder)
        parent, name = os.path.split(folder)
        in_profile = name == PROFILE and os.path.basename(parent) == PLUGINS
        left -= not (in_profile or name == PLUGINS)
        # The logdir may itself be a session; any other folder may contain standalone files.
        in_folder = () if in_profile else _profiles(entries) if folder == top else _files_under_any_name(entries)
        record = None if in_profile else _record(entries)
        if in_folder or record:
            yield Run(path_text(_relative(folder, top) or name), in_folder, folder, root, record)
        for entry in _folders_to_search(entries, in_folder):
            if not in_profile:
                leads_to_runs = entry.name == PLUGINS or (name == PLUGINS and entry.name == PROFILE)
                (folders.appendleft if leads_to_runs else folders.append)(entry.path)
                continue
            inside = list_folder(entry.path)
            files, record = _profiles(inside), _record(inside)
            if files or record:
                tb_run = _relative(os.path.dirname(parent), top)
                yield Run(
                    path_text(f"{tb_run}/{entry.name}" if tb_run else entry.name), files, entry.path, root, record
                )
            folders.extend(folder.path for folder in _folders_to_search(inside, files))


def _relative(folder: str, top: str) -> str:
    """Return the path of a folder below the logdir, with slashes; empty for others, such as the logdir itself."""
    below = os.path.join(top, "")
    return folder[len(below) :].replace(os.sep, "/") if folder.startswith(below) else ""


def _folders_to_search(entries: list[Entry], files: tuple[HostFile, ...]) -> Iterator[Entry]:
    """Yield the folders that may contain runs. A dump has a folder for each module, without runs."""
    in_dump = any(file.program or file.stages for file in files)  # the programs of other folders have no titles yet
    return (entry for entry in entries if entry.is_folder and not (in_dump and module_of(entry.name)))


def _profiles(entries: list[Entry]) -> tuple[HostFile, ...]:
    """Return a session's files. Programs are included only where there is no profile, which would contain them."""
    files = _sorted_files(entries)
    profiles = tuple(_host_file(file) for file in files if file.name.endswith(XPLANE))
    return (*profiles, *_standalone(files)) if profiles else _files_under_any_name(entries)


def _files_under_any_name(entries: list[Entry]) -> tuple[HostFile, ...]:
    """Return the programs and the standalone files of any folder."""
    if all(entry.is_folder for entry in entries):  # as most are
        return ()
    files = _sorted_files(entries)
    # XProf writes the programs of a profile beside it.
    beside_profile = any(file.name.endswith(XPLANE) for file in files)
    programs = [file for file in files if file.name.endswith(HLO_PROTO) and file.name != NO_MODULE]
    named = () if beside_profile else tuple(map(_host_file, programs))
    return (*named, *dumped_programs(entries), *_standalone(files))


def _standalone(files: list[Entry]) -> tuple[HostFile, ...]:
    # A compressed program also ends like a compressed device profile.
    found = [file for file in files if file.name.endswith(STANDALONE) and not file.name.endswith(HLO_PROTO)]
    names = [(host_name(file.name), format_of(file.name)) for file in found]
    uses = Counter(names)
    # Of `step.pickle` and `step.pkl`, the whole name is the host's.
    return tuple(
        _host_file(file) if uses[name] == 1 else _host_file(file)._replace(host=path_text(file.name))
        for file, name in zip(found, names, strict=True)
    )


def _record(entries: list[Entry]) -> HostFile | None:
    """Return the record of a fit's candidate in a folder."""
    return next((_host_file(entry) for entry in entries if entry.name == RECORD and not entry.is_folder), None)


def _sorted_files(entries: list[Entry]) -> list[Entry]:
    """Return the files among entries, other than those of XLA dumps, in natural order: memory2 before memory10."""
    files = (e for e in entries if not (e.is_folder or is_dump_file(e.name) or parse_program(e.name)))
    return sorted(files, key=lambda entry: natural_key(entry.name))


def _host_file(entry: Entry) -> HostFile:
    host = path_text(host_name(entry.name))
    return HostFile(entry.path, host, entry.size, entry.stamp, modified_ns=entry.modified_ns, top=entry.top)
