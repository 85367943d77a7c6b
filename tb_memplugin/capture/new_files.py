"""New files and folders in a logdir, local or remote by fsspec. A file is complete or absent, and none is overwritten.

Several processes, on several machines, may write to one logdir at the same time.
"""

from __future__ import annotations

import inspect
import logging
import os
import platform
import posixpath
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

# Bytes, or a function that writes them to the local file of a given name.
Content = bytes | Callable[[str], object]
LogDir = str | os.PathLike[str]

MAX_SAME_NAMES = 10_000
MAX_HOST_LENGTH = 60  # a file name may have 255 bytes
# A URL that was a pathlib.Path: s3:/bucket. One letter is a drive of Windows.
URL_AS_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
LOCAL_URL = re.compile(r"(?:file|local)://")


def is_remote(path: str) -> bool:
    """Return whether a path is a URL, which fsspec opens."""
    return "://" in path


def logdir_text(logdir: LogDir | bytes) -> str:
    """Return a logdir as text: a local path, or a URL. ValueError where it is neither."""
    text = os.fsdecode(logdir)
    if not text:
        raise ValueError("the logdir is empty: give a folder, or '.' for the current one")
    if text.startswith("://"):
        raise ValueError(f"{text} has no scheme: give a URL such as gs://bucket/run")
    if URL_AS_PATH.match(text):
        raise ValueError(f"{text} is a URL that lost a slash in a pathlib.Path: give the logdir as text")
    return text if is_remote(text) else os.path.expanduser(text)


def join(folder: str, *names: str) -> str:
    """Return the path of a file in a folder."""
    return posixpath.join(folder, *names) if is_remote(folder) else os.path.join(folder, *names)


def process_name() -> str:
    """Return a name of this process, `<host>_<process id>`: the same in no other process that runs now."""
    host = platform.node().partition(".")[0] or "localhost"
    return f"{re.sub(r'[^A-Za-z0-9-]', '-', host)[:MAX_HOST_LENGTH]}_{os.getpid()}"


def create_folder(parent: str, name: str) -> str:
    """Create a folder that did not exist, and return its path: `<parent>/<name>`, or `<name>_2` if that exists.

    A remote folder gets a random name, since object stores have no folders that could be created by one process only.
    """
    if (local := _local_path(parent)) is None:
        return join(parent, f"{name}_{secrets.token_hex(4)}")
    os.makedirs(local, exist_ok=True)
    for numbered in _numbered(name):
        with suppress(FileExistsError):
            os.mkdir(os.path.join(local, numbered))
            return join(parent, numbered)
    raise FileExistsError(f"{parent} has {MAX_SAME_NAMES:,} folders named {name}")


def remove_empty_folder(folder: str) -> None:
    """Remove a folder that create_folder created, if it is still empty."""
    if (local := _local_path(folder)) is not None:
        with suppress(OSError):
            os.rmdir(local)


def create_file(path: str, content: Content) -> str:
    """Create a file that did not exist, and return its path: `path`, or `<stem>_2.<suffix>` if that exists.

    OSError and, from remote stores, errors of other types where the file cannot be written; then there is none.
    """
    folder, name = posixpath.split(path) if is_remote(path) else os.path.split(path)
    stem, dot, suffix = name.partition(".")
    _make_folder(folder)
    for numbered in _numbered(stem):
        file = join(folder, f"{numbered}{dot}{suffix}")
        with suppress(FileExistsError):
            _write(file, content, replace=False)
            return file
    raise FileExistsError(f"{folder} has {MAX_SAME_NAMES:,} files named {name}")


def replace_file(path: str, content: Content) -> None:
    """Write a file in place of one that this process created."""
    _make_folder(os.path.dirname(path))
    _write(path, content, replace=True)


def _numbered(name: str) -> Iterator[str]:
    yield name
    for number in range(2, MAX_SAME_NAMES):
        yield f"{name}_{number}"


def _local_path(path: str) -> str | None:
    """Return the path in the local file system; None for a remote one."""
    if not is_remote(path):
        return path
    if not LOCAL_URL.match(path):
        return None
    from fsspec.implementations.local import LocalFileSystem

    local: str = LocalFileSystem._strip_protocol(path)
    return local


def _make_folder(folder: str) -> None:
    if (local := _local_path(folder)) is not None:
        os.makedirs(local, exist_ok=True)
        return
    import fsspec

    with _without_log(folder):
        system, name = fsspec.core.url_to_fs(folder)
        with suppress(PermissionError, NotImplementedError):  # object stores need no folder
            system.makedirs(name, exist_ok=True)


def _write(path: str, content: Content, replace: bool) -> None:
    if (local := _local_path(path)) is not None:
        _write_local(local, content, replace)
    elif callable(content):
        with tempfile.TemporaryDirectory(prefix="tb_memplugin_") as folder:
            content(temporary := os.path.join(folder, "content"))
            with open(temporary, "rb") as stream:
                _write_remote(path, stream.read(), replace)
    else:
        _write_remote(path, content, replace)


def _write_local(path: str, content: Content, replace: bool) -> None:
    if not replace and os.path.lexists(path):
        raise FileExistsError(path)
    temporary = f"{path}.{secrets.token_hex(4)}.part"
    try:
        if callable(content):
            content(temporary)
        else:
            with open(temporary, "xb") as stream:
                stream.write(content)
        _publish(temporary, path, replace)
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _publish(temporary: str, path: str, replace: bool) -> None:
    """Give a complete file its name. FileExistsError where another process took the name."""
    if replace:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)  # unlike a rename, a link never overwrites
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(temporary, path)


def _write_remote(path: str, content: bytes, replace: bool) -> None:
    import fsspec

    with _without_log(path):
        system, name = fsspec.core.url_to_fs(path)
        # Stores of clouds have a call that writes an object at once. Older versions of some cannot refuse to overwrite.
        is_whole = bool(system.async_impl) or type(system).pipe_file is not fsspec.AbstractFileSystem.pipe_file
        is_exclusive = is_whole and not replace and "mode" in inspect.signature(system.pipe_file).parameters
        if not replace and not is_exclusive and system.exists(name):
            raise FileExistsError(path)
        if is_whole:
            system.pipe_file(name, content, **({"mode": "create"} if is_exclusive else {}))
        else:
            _write_and_commit(system, name, content)


@contextmanager
def _without_log(url: str) -> Iterator[None]:
    """Silence the log of a store: gcsfs logs a traceback at each attempt to connect, and the caller has the error."""
    import fsspec

    package = fsspec.get_filesystem_class(fsspec.utils.get_protocol(url)).__module__.partition(".")[0]
    loggers = [
        logging.getLogger(name)
        for name in [package, *logging.root.manager.loggerDict]
        if name == package or name.startswith(f"{package}.")
    ]

    def reject(record: logging.LogRecord) -> bool:
        return False

    for logger in loggers:
        logger.addFilter(reject)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(reject)


def _write_and_commit(system: Any, name: str, content: bytes) -> None:
    """Write a file of a store that is a file system, such as SFTP: under another name until it is complete."""
    stream = system.open(name, "wb", autocommit=False)
    try:
        with stream:
            stream.write(content)
        stream.commit()
    except BaseException:
        with suppress(Exception):
            stream.discard()
        with suppress(Exception):  # where the store ignores autocommit
            system.rm_file(name)
        raise
    finally:
        with suppress(Exception):  # the file is in this list only where other code has begun a transaction
            system.transaction.files.remove(stream)
