"""Listing of local folders, by os.scandir; those of remote logdirs are listed by logdir/remote."""

from __future__ import annotations

import os
from functools import partial
from operator import attrgetter

from tb_memplugin.errors import InputError
from tb_memplugin.logdir.files import Entry, FolderLister, reason, remedy, stamp_of
from tb_memplugin.logdir.names import is_dump_file, is_inside, is_read, is_remote
from tb_memplugin.logdir.remote_folders import list_remote, open_remote

BY_NAME = attrgetter("name")


def open_logdir(root: str, *, recursive: bool = True) -> tuple[str, FolderLister]:
    """Return the resolved path of a logdir, and a function that lists a folder in it. InputError if it is missing.

    `recursive`: list a remote logdir at once where its store can, for a search of all folders.
    """
    if is_remote(root):
        return open_remote(root, recursive=recursive)
    return _open_local(root)


def list_folder(root: str, folder: str) -> list[Entry]:
    """List one folder in a logdir. InputError if the logdir is missing."""
    if is_remote(root):
        return list_remote(root, folder)
    return _open_local(root)[1](folder)


def _open_local(root: str) -> tuple[str, FolderLister]:
    try:
        top = os.path.realpath(os.path.expanduser(root))
        os.scandir(top).close()
    except NotADirectoryError as error:
        raise InputError("Not a folder", root, "give the folder that was passed to jax.profiler.trace") from error
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot open the logdir ({reason(error)})", root, remedy(error)) from error
    return top, partial(_list_local, top)


def _list_local(top: str, folder: str) -> list[Entry]:
    """Return entries by name; none for a folder that cannot be read, so that the others are still found.

    Linked folders are skipped: a target inside the logdir is listed there, and one outside is not part of the logdir.
    Linked files are included if their target is inside the logdir.
    """
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=BY_NAME):
                if entry.is_dir(follow_symlinks=False):
                    found.append(Entry(entry.name, entry.path, True))
                elif is_dump_file(entry.name):
                    # A dump has ten such files for each program, and few of them are ever opened.
                    if entry.is_file(follow_symlinks=False):
                        found.append(Entry(entry.name, entry.path, False))
                elif is_read(entry.name) and entry.is_file():
                    if entry.is_symlink() and not is_inside(top, entry.path):
                        continue
                    status = entry.stat()
                    stamp, modified_ns = stamp_of(status), status.st_mtime_ns
                    found.append(Entry(entry.name, entry.path, False, status.st_size, stamp, modified_ns))
    except OSError:
        pass
    return found
