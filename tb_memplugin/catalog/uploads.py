"""Files and texts that users drop or paste on the page: received in pieces, and kept in memory while the server runs.

They are never written to disk.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from tb_memplugin.catalog.listing import Listing, listing_of_content
from tb_memplugin.catalog.listing_cache import held_bytes
from tb_memplugin.errors import InputError
from tb_memplugin.free_memory import require
from tb_memplugin.logdir import HostFile, ProgramFile, Run
from tb_memplugin.logdir.names import host_name
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

# Of all files that are being sent. Larger files are read from a logdir, without a copy.
MAX_UPLOAD_BYTES = 512 << 20
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
    """Files that are being sent. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uploads: dict[str, _Upload] = {}  # by key, which the page chooses

    def add(self, key: str, name: str, size: int, at: int, piece: bytes) -> tuple[int, memoryview | None]:
        """Add a piece; return the number of bytes so far, and the content once it is complete.

        InputError for a file that is too large, and for a piece that is not the next one.
        """
        if size > MAX_UPLOAD_BYTES:
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
        """Make room for a file, of those that nobody sends any more. InputError if there is none."""
        require(size * FREE_MULTIPLE, name)
        self._uploads.pop(key, None)
        idle_since = time.monotonic() - MAX_IDLE_SECONDS
        for other in [other for other, upload in self._uploads.items() if upload.touched < idle_since]:
            del self._uploads[other]
        if sum(len(upload.content) for upload in self._uploads.values()) + size > MAX_UPLOAD_BYTES:
            raise InputError("Other files are being sent", name, "try again when they are complete")
        self._uploads[key] = _Upload(name, np.empty(size, np.uint8).data)


RUN_PREFIX = "pasted"
SOURCE = "the pasted text"
MAX_TEXTS = 50
MAX_PASTED_BYTES = 256 << 20  # of recordings; a dump of 150,000 chunks takes 20 MB
MAX_NAME = 80  # characters of a file's name that the name of its run has


@dataclass(frozen=True, slots=True)
class PastedText:
    """The run of a text or a file, named after a hash of it, so that equal ones are one run."""

    run: Run
    listing: Listing

    @property
    def recordings(self) -> list[Recording]:
        return self.listing.recordings


class PastedTexts:
    """The latest texts and files, up to MAX_TEXTS and MAX_BYTES. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: OrderedDict[str, PastedText] = OrderedDict()

    def add(self, text: bytes) -> PastedText:
        """Read a text and keep its recordings. Raise InputError, and keep nothing, if it contains no error."""
        from tb_memplugin.readers.oom_text import read_oom_text  # 30 ms, which a summary does not need

        name = f"{RUN_PREFIX}/{blake2b(text, digest_size=16).hexdigest()}"
        if (known := self.get(name)) is not None:
            return known
        pasted = PastedText(
            Run(name, (HostFile(SOURCE, "", len(text), name),), folder="", root=""),
            Listing(read_oom_text(text, run=name, source=SOURCE)),
        )
        self._keep(pasted)
        return pasted

    def add_file(self, file_name: str, content: memoryview) -> PastedText:
        """Read a file and keep its recordings. Raise InputError, and keep nothing, if it has none."""
        shown = "".join(c if c.isprintable() and c not in "|/\\" else "_" for c in file_name)[-MAX_NAME:]
        name = f"{RUN_PREFIX}/{shown} {blake2b(content, digest_size=16).hexdigest()}"
        if (known := self.get(name)) is not None:
            return known
        # Its path is no file of this machine, so its module is not read from there.
        file = HostFile(shown, host_name(shown), len(content), name, ProgramFile("", ""))
        listing = listing_of_content(file, name, content)
        if not listing.recordings:
            problem = next((problem.text for problem in listing.problems), "it has no recording")
            raise InputError("The file cannot be shown", shown, problem)
        pasted = PastedText(Run(name, (file,), folder="", root=""), listing)
        self._keep(pasted)
        return pasted

    def _keep(self, pasted: PastedText) -> None:
        with self._lock:
            self._texts[pasted.run.name] = pasted
            while len(self._texts) > 1 and (len(self._texts) > MAX_TEXTS or self._total_bytes() > MAX_PASTED_BYTES):
                self._texts.popitem(last=False)

    def get(self, name: str) -> PastedText | None:
        with self._lock:
            return self._texts.get(name)

    def runs(self) -> list[Run]:
        """Return the runs of the texts, latest first."""
        with self._lock:
            return [pasted.run for pasted in reversed(self._texts.values())]

    def _total_bytes(self) -> int:
        return held_bytes(pasted.recordings for pasted in self._texts.values())
