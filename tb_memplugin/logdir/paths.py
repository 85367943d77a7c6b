"""Questions about paths: remote or local, inside a folder, part of a logdir."""

from __future__ import annotations

import os

# Stores whose folders are only parts of the names of files. Their drivers take requests from several threads.
FLAT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss", "memory"})


def is_remote(path: str) -> bool:
    """Return whether a path is a URL, which fsspec opens."""
    return "://" in path


def is_flat_store(url: str) -> bool:
    """Return whether a path is a URL of a store in FLAT_STORES."""
    return url.partition("://")[0] in FLAT_STORES


def path_text(path: str) -> str:
    r"""Return a path as text that JSON and URLs can contain: bytes of names that are not UTF-8 become `\xff`."""
    if path.isascii():
        return path
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # a surrogate that is no byte, as in names of Windows
        return path.encode("utf-8", "backslashreplace").decode()


def is_inside(top: str, path: str) -> bool:
    """Return whether a local path, with links resolved, is the folder `top` or inside it."""
    try:
        real_top = os.path.realpath(top)
        return os.path.commonpath([real_top, os.path.realpath(path)]) == real_top
    except ValueError:  # a null byte, or another drive
        return False


def is_read_with(path: str, file: str) -> bool:
    """Return whether the local `file` is, or would be, in the logdir that `path` belongs to.

    `path` may be a logdir, or a session or a file in one. A standalone file is in a logdir only with itself.
    """
    if is_remote(path):
        return False
    real = os.path.realpath(os.path.expanduser(path))
    logdir, in_session, _ = (real + os.sep).rpartition(os.sep + os.path.join("plugins", "profile", ""))
    return is_inside(logdir or os.sep if in_session else real, file)
