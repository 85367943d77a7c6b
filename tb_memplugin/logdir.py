"""What a logdir holds: runs, hosts, files. Reads names and sizes, and never writes.

A run is a folder `<logdir>/<any>/plugins/profile/<session>/` with `<host>.xplane.pb` files in it, as
jax.profiler writes them, or any other folder that holds files of one moment or process, such as `memory1.prof`.
A local logdir is walked with os.scandir, a remote one (any URL that fsspec knows) with its `ls`.
"""

from __future__ import annotations

import mmap
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tb_memplugin.errors import InputError

XPLANE = ".xplane.pb"
# A bare program. XProf leaves `<module>.hlo_proto.pb` beside the profile it is from; alone it is all we have.
HLO_PROTO = (".hlo_proto.pb", ".hlo.pb")
# Files that scripts write themselves, wherever they like: JAX device profiles, PyTorch snapshots, traces and timelines
# of its profiler, errors. Each stands for itself, by its own name; plain .json is too common to be looked into.
OWN = (
    ".prof", ".pprof", ".pb.gz", ".pickle", ".pkl", ".snapshot.json", ".pt.trace.json", ".pt.trace.json.gz",
    ".memory.json", ".memory.json.gz", ".raw.json.gz", ".oom.txt",
)  # fmt: skip
READ = (".pb", *OWN)
NO_MODULE = "NO_MODULE.hlo_proto.pb"  # XProf's empty marker for "looked, found no program"

# A logdir kept beside checkpoints or a data set can have millions of folders, and TensorBoard asks on every
# page load whether there is anything to show. Breadth first, so that what lies deep is what is missed.
MAX_FOLDERS = 20_000


@dataclass(frozen=True, slots=True)
class HostFile:
    """A profile of one host, or a file that stands for itself. `stamp` changes when the file does."""

    path: str
    host: str
    size: int
    stamp: str


@dataclass(frozen=True, slots=True)
class Run:
    """One session; named as XProf names it, `<tb run>/<session>`, a root-level tb run left out."""

    name: str
    files: tuple[HostFile, ...]
    folder: str
    root: str  # the logdir it was found in


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    path: str
    is_folder: bool
    size: int = 0
    stamp: str = ""


_Lister = Callable[[str], list[_Entry]]


def is_remote(path: str) -> bool:
    return "://" in path


def find_runs(root: str) -> list[Run]:
    """Every run, newest name first. InputError where `root` does not exist or holds nothing."""
    runs = list(_runs(root))
    if not runs:
        raise InputError(
            "No profile found",
            root,
            "looked for plugins/profile/<session>/<host>.xplane.pb, which jax.profiler.trace(logdir) writes, and for "
            "device profiles (*.prof) and PyTorch snapshots (*.pickle)",
        )
    return sorted(runs, key=lambda run: run.name, reverse=True)


def has_runs(root: str) -> bool:
    """Whether there is any run: cheap, stops at the first one, never raises."""
    try:
        return any(True for _ in _runs(root))
    except InputError:
        return False


def seen_again(run: Run) -> Run | None:
    """The run as its folder is now, without a walk through the logdir; None where nothing is left of it."""
    _, list_folder = _open(run.root)
    files = _profiles(list_folder(run.folder))
    return replace(run, files=files) if files else None


def read_bytes(file: HostFile) -> memoryview | bytes:
    """The content; mapped, not copied, where it is local. InputError where it cannot be read."""
    try:
        if is_remote(file.path):
            import fsspec

            with fsspec.open(file.path, "rb") as stream:
                content: bytes = stream.read()
            return content
        with open(file.path, "rb") as stream:
            if file.size == 0:
                return b""
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except Exception as error:  # each remote store raises what it likes
        raise InputError("Cannot read the file", file.path, _reason(error)) from error


def host_file(path: str) -> HostFile:
    """A single file the user named. InputError where it is not there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise InputError("Cannot read the file", path, _reason(error)) from error
    return HostFile(path, _host(os.path.basename(path)), status.st_size, _stamp(status))


def _runs(root: str) -> Iterator[Run]:
    top, list_folder = _open(root)
    folders = deque([top])
    for _ in range(MAX_FOLDERS):
        if not folders:
            return
        folder = folders.popleft()
        entries = list_folder(folder)
        parent, name = os.path.split(folder)
        in_profile = name == "profile" and os.path.basename(parent) == "plugins"
        # The user named a session itself, or scripts wrote their files here.
        if not in_profile and (files := _profiles(entries) if folder == top else _own(_by_name(entries))):
            within = os.path.relpath(folder, top).replace(os.sep, "/")
            yield Run(name if within == os.curdir else within, files, folder, root)
        for entry in entries:
            if not entry.is_folder:
                continue
            if not in_profile:
                folders.append(entry.path)
            elif files := _profiles(list_folder(entry.path)):
                tb_run = os.path.relpath(os.path.dirname(parent), top)
                above = tb_run == os.curdir or tb_run.startswith(os.pardir)
                run = entry.name if above else f"{tb_run.replace(os.sep, '/')}/{entry.name}"
                yield Run(run, files, entry.path, root)


def _profiles(entries: list[_Entry]) -> tuple[HostFile, ...]:
    """The files we read in a session. Bare programs only where there is no profile: beside one they are copies."""
    files = _by_name(entries)
    profiles = [file for file in files if file.name.endswith(XPLANE)] or [
        file for file in files if file.name.endswith(HLO_PROTO) and file.name != NO_MODULE
    ]
    return (*map(_host_file, profiles), *_own(files))


def _own(files: list[_Entry]) -> tuple[HostFile, ...]:
    return tuple(_host_file(file) for file in files if file.name.endswith(OWN))


def _by_name(entries: list[_Entry]) -> list[_Entry]:
    """The files among them, sorted as people count: memory2 before memory10."""
    return sorted((entry for entry in entries if not entry.is_folder), key=lambda entry: _by_number(entry.name))


def _host_file(entry: _Entry) -> HostFile:
    return HostFile(entry.path, _host(entry.name), entry.size, entry.stamp)


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name)]


def _host(name: str) -> str:
    """A bare program tells no host; a file that stands for itself goes by its name."""
    return next((name.removesuffix(suffix) for suffix in (XPLANE, *OWN) if name.endswith(suffix)), "")


def _open(root: str) -> tuple[str, _Lister]:
    """The logdir's own name for itself, and what lists folders in it."""
    return _remote(root) if is_remote(root) else _local(root)


def _local(root: str) -> tuple[str, _Lister]:
    try:
        top = os.path.realpath(os.path.expanduser(root))
        os.scandir(top).close()
    except NotADirectoryError as error:
        raise InputError("Not a folder", root, "name the folder given to jax.profiler.trace") from error
    except (OSError, ValueError) as error:
        raise InputError("Cannot open the logdir", root, _reason(error)) from error
    return top, partial(_scan, top)


def _scan(top: str, folder: str) -> list[_Entry]:
    """Entries by name; nothing for a folder that cannot be read, which must not cost the user the others.

    Linked folders are not followed: one inside the logdir is listed where it stands, one outside is not ours
    to read. Linked files are read if they stay inside.
    """
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    found.append(_Entry(entry.name, entry.path, True))
                elif entry.name.endswith(READ) and entry.is_file():
                    if entry.is_symlink() and not is_inside(top, entry.path):
                        continue
                    status = entry.stat()
                    found.append(_Entry(entry.name, entry.path, False, status.st_size, _stamp(status)))
    except OSError:
        pass
    return found


def is_inside(top: str, path: str) -> bool:
    """Whether a local path, its links followed, lies in folder `top` or is it."""
    try:
        real_top = os.path.realpath(top)
        return os.path.commonpath([real_top, os.path.realpath(path)]) == real_top
    except ValueError:  # a null byte, or another drive
        return False


def is_read_with(path: str, file: str) -> bool:
    """Whether `file` is, or would be, in the logdir that `path` is: one itself, or a session or file in its sessions.

    Of any other file only that file is. What is remote holds nothing that is local.
    """
    if is_remote(path):
        return False
    real = os.path.realpath(os.path.expanduser(path))
    above, in_session, _ = (real + os.sep).rpartition(os.sep + os.path.join("plugins", "profile", ""))
    return is_inside(above or os.sep if in_session else real, file)


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}"


def _remote(root: str) -> tuple[str, _Lister]:
    try:
        import fsspec

        system, top = fsspec.core.url_to_fs(root.rstrip("/"))
        found = system.isdir(top)
    except Exception as error:  # each remote store raises what it likes
        raise InputError("Cannot open the logdir", root, _reason(error)) from error
    if not found:
        raise InputError("Cannot open the logdir", root, "there is no such folder")
    return top, partial(_list_remote, system)


def _list_remote(system: Any, folder: str) -> list[_Entry]:
    try:
        system.invalidate_cache(folder)  # a new run must show without a restart
        listed = system.ls(folder, detail=True)
    except OSError:
        return []
    entries = []
    for info in sorted(listed, key=lambda info: str(info["name"])):
        path = str(info["name"]).rstrip("/")
        name = path.rpartition("/")[2]
        if info["type"] == "directory":
            entries.append(_Entry(name, path, True))
        elif name.endswith(READ):
            # What changes with the content has another name in each store.
            keys = ("etag", "ETag", "mtime", "updated")
            changed = next((str(info[key]) for key in keys if info.get(key)), "")
            size = int(info["size"] or 0)
            entries.append(_Entry(name, system.unstrip_protocol(path), False, size, f"{changed}-{size}"))
    return entries


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
