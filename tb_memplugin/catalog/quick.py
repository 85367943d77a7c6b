"""A mode in which a thread asks a catalog only for what it has, and neither reads nor waits for another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_mode = threading.local()


class WouldReadError(Exception):
    """The catalog would have to read the logdir or a file."""


@contextmanager
def without_reading() -> Iterator[None]:
    """Let the catalog raise WouldReadError in this thread where it would read."""
    _mode.is_quick = True
    try:
        yield
    finally:
        _mode.is_quick = False


def before_reading() -> None:
    if getattr(_mode, "is_quick", False):
        raise WouldReadError
