"""Listing of folders: local ones by os.scandir, remote ones by fsspec, one by one or all at once in flat stores."""

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.logdir.files import Entry, FolderLister, reason, remedy, stamp_of
from tb_memplugin.logdir.names import is_dump_file, is_flat_store, is_inside, is_read, is_remote
from tb_memplugin.logdir.remote_files import stored_modified_ns, stored_size, stored_stamp

# By number of requests: a store lists 1,000 files in some 0.1 s. A logdir with more is searched folder by folder.
MAX_SECONDS = 60.0
Info = dict[str, Any]  # what a store says of a file or folder
Tree = dict[str, list[Info]]  # by folder


def open_logdir(root: str, *, recursive: bool) -> tuple[str, FolderLister]:
    """Return the resolved path of a logdir, and a function that lists a folder in it. InputError if it is missing.

    `recursive`: for a search of all folders, list a remote logdir at once where its store can, which takes one request
    for 1,000 files.
    """
    if not is_remote(root):
        return _open_local(root)
    try:
        system, top = _opened(root)
        if recursive and is_flat_store(root) and (tree := _list_all(system, top)):
            return top, lambda folder: _entries(system, folder, tree[folder])
        found = system.isdir(top)
    except Exception as error:  # remote stores raise errors of many types
        raise InputError(f"Cannot open the logdir ({reason(error)})", root, remedy(error)) from error
    if not found:
        raise InputError("Cannot open the logdir", root, "the folder does not exist")
    return top, partial(_list, system)


def list_folder(root: str, folder: str) -> list[Entry]:
    """List one folder in a logdir. InputError if the logdir is missing, or where its store cannot be opened."""
    if not is_remote(root):
        return _open_local(root)[1](folder)
    try:
        system, _ = _opened(root)
    except Exception as error:
        raise InputError(f"Cannot open the logdir ({reason(error)})", root, remedy(error)) from error
    return _list(system, folder)


def _opened(root: str) -> tuple[Any, str]:
    import fsspec

    system, top = fsspec.core.url_to_fs(root.rstrip("/"))
    return system, top


def _list_all(system: Any, top: str) -> Tree | None:
    """Return what a store says of each file and folder, by the folder it is in; None where it has too many files."""
    from fsspec.asyn import sync
    from fsspec.exceptions import FSTimeoutError

    try:
        if system.async_impl:
            found = sync(system.loop, system._find, top, detail=True, timeout=MAX_SECONDS)
        else:
            found = system.find(top, detail=True)
    except FSTimeoutError:
        return None
    finally:
        system.invalidate_cache()  # the listing takes some 100 MB for 100,000 files
    return _tree(top, found.values())


def _tree(top: str, infos: Iterable[Info]) -> Tree | None:
    """Return the infos of files and folders by the folder that they are in; None where there are none.

    Names with an empty part, as in `a//b`, are left out: no path leads to them.
    """
    tree: Tree = {top: []}
    for info in infos:
        path = str(info["name"])
        if path.startswith(f"{top}/") and "//" not in path[len(top) :]:
            folder = path.rpartition("/")[0]
            _add_folder(tree, folder)
            if path != f"{folder}/":  # an empty file that marks a folder
                tree[folder].append(info)
    return tree if tree[top] else None


def _add_folder(tree: Tree, folder: str) -> None:
    if folder not in tree:
        parent = folder.rpartition("/")[0]
        _add_folder(tree, parent)
        tree[parent].append({"name": folder, "type": "directory"})
        tree[folder] = []


def _list(system: Any, folder: str) -> list[Entry]:
    """Return the entries of a folder by name; none for one that cannot be read, so that the others are still found."""
    try:
        system.invalidate_cache(folder)  # so that a new run appears without a restart
        infos = system.ls(folder, detail=True)
    except OSError:
        return []
    return _entries(system, folder, infos)


def _entries(system: Any, folder: str, infos: Iterable[Info]) -> list[Entry]:
    found = []
    for info in sorted(infos, key=lambda info: str(info["name"])):
        path = str(info["name"]).rstrip("/")
        parent, _, name = path.rpartition("/")
        if parent != folder.rstrip("/"):  # the folder itself, or one without a name in it
            continue
        if info["type"] == "directory":
            found.append(Entry(name, path, True))
        elif is_read(name) or is_dump_file(name):
            size, stamp, modified_ns = stored_size(info), stored_stamp(info), stored_modified_ns(info)
            found.append(Entry(name, system.unstrip_protocol(path), False, size, stamp, modified_ns))
    return found


def _open_local(root: str) -> tuple[str, FolderLister]:
    try:
        top = os.path.realpath(os.path.expanduser(root))
        os.scandir(top).close()
    except NotADirectoryError as error:
        raise InputError("Not a folder", root, "give the folder that was passed to jax.profiler.trace") from error
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot open the logdir ({reason(error)})", root, remedy(error)) from error
    return top, partial(_list_local, top)


def links_out(root: str, folders: Iterable[str]) -> list[str]:
    """Return the paths of linked folders whose targets are outside of a local logdir: in it and in further folders."""
    if is_remote(root):
        return []
    top, _ = _open_local(root)
    found = []
    for folder in sorted({top, *folders}):
        with suppress(OSError), os.scandir(folder) as entries:
            links = [entry.path for entry in entries if entry.is_symlink() and entry.is_dir()]
            found += sorted(path for path in links if not is_inside(top, path))
    return found


def _list_local(top: str, folder: str) -> list[Entry]:
    """Return entries by name; none for a folder that cannot be read, so that the others are still found.

    Linked folders are skipped: a target inside the logdir is listed there, and one outside is not part of the logdir.
    Linked files are included if their target is inside the logdir.
    """
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=attrgetter("name")):
            if entry.is_dir(follow_symlinks=False):
                found.append(Entry(entry.name, entry.path, True))
            elif is_dump_file(entry.name) and not is_read(entry.name):
                # A dump has ten such files for each program, and few of them are ever opened.
                if entry.is_file(follow_symlinks=False):
                    found.append(Entry(entry.name, entry.path, False, top=top))
            elif is_read(entry.name) and entry.is_file() and (not entry.is_symlink() or is_inside(top, entry.path)):
                status = entry.stat()
                version = status.st_size, stamp_of(status), status.st_mtime_ns
                found.append(Entry(entry.name, entry.path, False, *version, top))
    return found
