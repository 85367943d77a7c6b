"""A mode in which a thread asks a catalog only for what it has, and does not read or wait for a reading thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_mode = threading.local()


class WouldReadError(Exception):
    """The catalog would have to read a file or search the logdir."""


@contextmanager
def without_reading(may_search: bool = False) -> Iterator[None]:
    """Let the catalog raise WouldReadError in this thread where it would read a file, or search without permission."""
    _mode.may_search, _mode.may_read = may_search, False
    try:
        yield
    finally:
        _mode.may_search = _mode.may_read = True


def may_read() -> bool:
    """Return whether this thread lets the catalog read files."""
    return bool(getattr(_mode, "may_read", True))


def before_reading() -> None:
    if not may_read():
        raise WouldReadError


def before_searching() -> None:
    if not getattr(_mode, "may_search", True):
        raise WouldReadError
