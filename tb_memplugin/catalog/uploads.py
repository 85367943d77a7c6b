"""Files that the page sends in pieces, put together in memory and never written to disk."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.free_memory import require
from tb_memplugin.sizes import bytes_text

# Of all files that are being sent. Larger files are read from a logdir, without a copy.
MAX_BYTES = 512 << 20
MAX_IDLE_SECONDS = 120
# Reading a file takes as much memory again for its tables, or more.
FREE_MULTIPLE = 3


@dataclass(slots=True)
class _Upload:
    name: str
    content: memoryview
    done: int = 0
    touched: float = field(default_factory=time.monotonic)


class Uploads:
    """Files that are being sent, the latest last. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uploads: OrderedDict[str, _Upload] = OrderedDict()  # by key, which the page chooses

    def add(self, key: str, name: str, size: int, at: int, piece: bytes) -> tuple[int, memoryview | None]:
        """Add a piece; return the number of bytes so far, and the content once it is complete.

        InputError for a file that is too large, and for a piece that is not the next one.
        """
        if size > MAX_BYTES:
            raise InputError(
                f"The file is too large to be sent: {bytes_text(size)}", name, "put it into the logdir, then reload"
            )
        with self._lock:
            if at == 0:
                self._begin(key, name, size)
            upload = self._uploads.get(key)
            if upload is None or upload.done != at or upload.name != name or at + len(piece) > len(upload.content):
                raise InputError("The file was not received completely", name, "drop it on the page again")
            upload.content[at : at + len(piece)] = piece
            upload.done += len(piece)
            upload.touched = time.monotonic()
            if upload.done < len(upload.content):
                return upload.done, None
            del self._uploads[key]
        return upload.done, upload.content.toreadonly()

    def _begin(self, key: str, name: str, size: int) -> None:
        """Make room for a file, of those that nobody sends any more, and then of the oldest."""
        require(size * FREE_MULTIPLE, name)
        self._uploads.pop(key, None)
        idle_since = time.monotonic() - MAX_IDLE_SECONDS
        for other in [other for other, upload in self._uploads.items() if upload.touched < idle_since]:
            del self._uploads[other]
        while sum(len(upload.content) for upload in self._uploads.values()) + size > MAX_BYTES:
            self._uploads.popitem(last=False)
        self._uploads[key] = _Upload(name, np.empty(size, np.uint8).data)
