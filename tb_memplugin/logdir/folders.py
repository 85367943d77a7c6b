"""Listing of folders, local by os.scandir and remote by fsspec."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.logdir.dump_names import is_dump_file
from tb_memplugin.logdir.files import reason, stamp_of
from tb_memplugin.logdir.paths import is_inside, is_remote
from tb_memplugin.logdir.suffixes import READABLE, RECORD

# Times of remote files that are larger than the year 5138 in seconds are in milliseconds.
MAX_SECONDS = 10**11
MAX_MILLISECONDS = MAX_SECONDS * 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder, a file that can be read by its suffix, or another file of an XLA dump, without size and stamp."""

    name: str
    path: str
    is_folder: bool
    size: int = 0
    stamp: str = ""
    modified_ns: int = 0  # since 1970; 0: unknown


FolderLister = Callable[[str], list[Entry]]


def open_logdir(root: str) -> tuple[str, FolderLister]:
    """Return the resolved path of a logdir, and a function that lists a folder in it. InputError if it is missing."""
    return _open_remote(root) if is_remote(root) else _open_local(root)


def _open_local(root: str) -> tuple[str, FolderLister]:
    try:
        top = os.path.realpath(os.path.expanduser(root))
        os.scandir(top).close()
    except NotADirectoryError as error:
        raise InputError("Not a folder", root, "give the folder that was passed to jax.profiler.trace") from error
    except (OSError, ValueError) as error:
        raise InputError("Cannot open the logdir", root, reason(error)) from error
    return top, partial(_list_local, top)


def _list_local(top: str, folder: str) -> list[Entry]:
    """Return entries by name; none for a folder that cannot be read, so that the others are still found.

    Linked folders are skipped: a target inside the logdir is listed there, and one outside is not part of the logdir.
    Linked files are included if their target is inside the logdir.
    """
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    found.append(Entry(entry.name, entry.path, True))
                elif is_dump_file(entry.name):
                    # A dump has ten such files for each program, and few of them are ever opened.
                    if entry.is_file(follow_symlinks=False):
                        found.append(Entry(entry.name, entry.path, False))
                elif _is_read(entry.name) and entry.is_file():
                    if entry.is_symlink() and not is_inside(top, entry.path):
                        continue
                    status = entry.stat()
                    stamp, modified_ns = stamp_of(status), status.st_mtime_ns
                    found.append(Entry(entry.name, entry.path, False, status.st_size, stamp, modified_ns))
    except OSError:
        pass
    return found


def _is_read(name: str) -> bool:
    return name.endswith(READABLE) or name == RECORD


def _open_remote(root: str) -> tuple[str, FolderLister]:
    try:
        import fsspec

        system, top = fsspec.core.url_to_fs(root.rstrip("/"))
        found = system.isdir(top)
    except Exception as error:  # remote stores raise errors of many types
        raise InputError("Cannot open the logdir", root, reason(error)) from error
    if not found:
        raise InputError("Cannot open the logdir", root, "the folder does not exist")
    return top, partial(_list_remote, system)


def _list_remote(system: Any, folder: str) -> list[Entry]:
    try:
        system.invalidate_cache(folder)  # so that a new run appears without a restart
        infos = system.ls(folder, detail=True)
    except OSError:
        return []
    entries = []
    for info in sorted(infos, key=lambda info: str(info["name"])):
        path = str(info["name"]).rstrip("/")
        name = path.rpartition("/")[2]
        if info["type"] == "directory":
            entries.append(Entry(name, path, True))
        elif _is_read(name) or is_dump_file(name):
            # Each store has another name for the field that changes with the content.
            keys = ("etag", "ETag", "mtime", "updated")
            version = next((str(info[key]) for key in keys if info.get(key)), "")
            size = int(info["size"] or 0)
            stamp, modified_ns = f"{version}-{size}", _modified_ns(info)
            entries.append(Entry(name, system.unstrip_protocol(path), False, size, stamp, modified_ns))
    return entries


def _modified_ns(info: dict[str, Any]) -> int:
    """Return the modification time that a store gives for a file, in nanoseconds since 1970; 0 where it is unknown.

    Each store has another name for it, and another type: seconds, milliseconds, a date, or its text.
    """
    for key in ("mtime", "updated", "LastModified", "last_modified", "modified", "modificationTime", "created"):
        value = info.get(key)
        try:
            if isinstance(value, str):
                value = datetime.fromisoformat(value)
            if isinstance(value, datetime):
                value = value.replace(tzinfo=value.tzinfo or UTC).timestamp()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < MAX_MILLISECONDS:
                return int(value * (10**9 if value < MAX_SECONDS else 10**6))
        except (ValueError, OverflowError, OSError):
            continue
    return 0
