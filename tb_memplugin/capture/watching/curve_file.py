"""The file of a curve: records are appended, so that it is complete whenever the process ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from tb_memplugin.capture.guard import SlowFailures
from tb_memplugin.capture.new_files import create_file, is_remote, replace_file
from tb_memplugin.capture.watching.append_file import AppendFile
from tb_memplugin.capture.watching.curve import Curve

# Stores have no way to append to a file, so it is written as a whole.
REMOTE_SECONDS = 60.0
RETRY_SECONDS = 30.0  # after a failure to write the whole file, as on a full disk


class CurveFile:
    """A local file that grows with its curve, or a remote one that is replaced once a minute."""

    def __init__(self, path: Callable[[], str]) -> None:
        """`path` is called when there is something to write; it may create folders, and fail."""
        self._make_path = path
        self.path = ""
        self._remote = False
        self._file: AppendFile | None = None
        self._version = -1  # of the curve that is in the file
        self._count = 0  # records in the file
        self._next = float("-inf")
        self._failures = SlowFailures()

    def write(self, curve: Curve, *, last: bool = False) -> None:
        """Write the records that are new. OSError, and others from stores, where that fails; the next call repeats it.

        `last`: the process ends, so there is no next call.
        """
        if self._version == curve.version and self._file is not None and os.path.exists(self.path):
            self._append(self._file, curve)
        elif last or (time.monotonic() >= self._next and not self._failures.is_pausing):
            self._next = time.monotonic() + RETRY_SECONDS
            with self._failures.attempt():
                self._write_whole(curve)
            self._next = time.monotonic() + REMOTE_SECONDS if self._remote else float("-inf")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, file: AppendFile, curve: Curve) -> None:
        file.write(curve.records(self._count))
        self._count = curve.count

    def _write_whole(self, curve: Curve) -> None:
        content, version, count = curve.content(), curve.version, curve.count
        self.close()  # Windows replaces no open file
        if not self.path:
            self.path = create_file(self._make_path(), content)
            self._remote = is_remote(self.path)
        else:
            replace_file(self.path, content)
        if not self._remote:
            self._file = AppendFile(self.path)
        self._version, self._count = version, count
