"""A local file to which records are appended, each completely or not at all."""

from __future__ import annotations

import os

FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class AppendFile:
    """A file that is written without a buffer, so that it is complete whenever the process ends."""

    def __init__(self, path: str) -> None:
        """OSError where the file cannot be opened. It is created where it does not exist."""
        self.path = path
        self._descriptor = os.open(path, FLAGS, 0o666)
        self._size = os.fstat(self._descriptor).st_size

    def write(self, data: bytes) -> None:
        """Append `data`. OSError where that fails; what a full disk took of it is removed again."""
        rest = memoryview(data)
        try:
            while rest:  # a full disk takes a part, and refuses the rest with the reason
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        os.close(self._descriptor)
