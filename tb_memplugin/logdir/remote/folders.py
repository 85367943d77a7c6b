"""Folders of a remote logdir, listed one by one, or all at once where a store keeps no folders."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.logdir.dump_names import is_dump_file
from tb_memplugin.logdir.files import reason
from tb_memplugin.logdir.folders import Entry, FolderLister, is_read
from tb_memplugin.logdir.remote import entries


def open_remote(root: str) -> tuple[str, FolderLister]:
    """Return the path of a logdir in its store, and a function that lists a folder in it. InputError if missing."""
    try:
        import fsspec

        system, top = fsspec.core.url_to_fs(root.rstrip("/"))
        found = system.isdir(top)
    except Exception as error:  # remote stores raise errors of many types
        raise InputError("Cannot open the logdir", root, reason(error)) from error
    if not found:
        raise InputError("Cannot open the logdir", root, "the folder does not exist")
    return top, partial(_list, system)


def _list(system: Any, folder: str) -> list[Entry]:
    """Return the entries of a folder by name; none for one that cannot be read, so that the others are still found."""
    try:
        system.invalidate_cache(folder)  # so that a new run appears without a restart
        infos = system.ls(folder, detail=True)
    except OSError:
        return []
    return _entries(system, infos)


def _entries(system: Any, infos: Iterable[dict[str, Any]]) -> list[Entry]:
    found = []
    for info in sorted(infos, key=lambda info: str(info["name"])):
        path = str(info["name"]).rstrip("/")
        name = path.rpartition("/")[2]
        if info["type"] == "directory":
            found.append(Entry(name, path, True))
        elif is_read(name) or is_dump_file(name):
            size, stamp, modified_ns = entries.size(info), entries.stamp(info), entries.modified_ns(info)
            found.append(Entry(name, system.unstrip_protocol(path), False, size, stamp, modified_ns))
    return found
