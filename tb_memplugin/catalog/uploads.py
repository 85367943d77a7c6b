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
from tb_memplugin.formats import format_of
from tb_memplugin.free_memory import require
from tb_memplugin.logdir import HostFile, ProgramFile, Run
from tb_memplugin.logdir.names import host_name
from tb_memplugin.logdir.parts import Excerpts, excerpts_of
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

# Of all files that are being sent. Larger files are read from a logdir, without a copy.
MAX_UPLOAD_BYTES = 512 << 20
MAX_IDLE_SECONDS = 120
# Reading a file takes as much memory again for its tables, or more.
FREE_MULTIPLE = 3


@dataclass(slots=True)
class _Upload:
    """A file that is being sent. Of a long text, `content` is its end, and excerpts of its beginning are taken."""

    name: str
    size: int
    content: memoryview
    excerpts: Excerpts | None
    done: int = 0
    touched: float = field(default_factory=time.monotonic)

    def add(self, piece: bytes) -> None:
        before = max(self.size - len(self.content) - self.done, 0)  # bytes of the piece that the content does not have
        if self.excerpts is not None and before:
            self.excerpts.add(piece[:before])
        at = self.done + len(piece[:before]) - (self.size - len(self.content))
        self.content[at : at + len(piece) - before] = piece[before:]
        self.done += len(piece)
        self.touched = time.monotonic()

    def complete(self) -> tuple[memoryview, int]:
        """Return the content with the excerpts, and the number of bytes that are in neither."""
        excerpts = self.excerpts.content() if self.excerpts is not None else b""
        if not excerpts:
            return self.content.toreadonly(), self.size - len(self.content)
        content = memoryview(b"\n".join((excerpts, self.content)))
        return content, max(self.size - len(content), 0)


class Uploads:
    """Files that are being sent. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uploads: dict[str, _Upload] = {}  # by key, which the page chooses

    def add(self, key: str, name: str, size: int, at: int, piece: bytes) -> tuple[int, memoryview | None, int]:
        """Add a piece; return the number of bytes so far, and the content once it is complete, with the bytes left out.

        InputError for a file that is too large, and for a piece that is not the next one.
        """
        if kept_bytes(name, size) > MAX_UPLOAD_BYTES:
            raise InputError(
                f"The file is too large to be sent: {bytes_text(size)}", name, "put it into the logdir, then reload"
            )
        with self._lock:
            if at == 0:
                self._begin(key, name, size)
            upload = self._uploads.get(key)
            if upload is None or (upload.done, upload.name, upload.size) != (at, name, size) or at + len(piece) > size:
                raise InputError("The file was not received completely", name, "drop it on the page again")
            upload.add(piece)
            if upload.done < upload.size:
                return upload.done, None, 0
            del self._uploads[key]
        return upload.done, *upload.complete()

    def _begin(self, key: str, name: str, size: int) -> None:
        """Make room for a file, of those that nobody sends any more. InputError if there is none."""
        kept = kept_bytes(name, size)
        require(kept * FREE_MULTIPLE, name)
        self._uploads.pop(key, None)
        idle_since = time.monotonic() - MAX_IDLE_SECONDS
        for other in [other for other, upload in self._uploads.items() if upload.touched < idle_since]:
            del self._uploads[other]
        if sum(len(upload.content) for upload in self._uploads.values()) + kept > MAX_UPLOAD_BYTES:
            raise InputError("Other files are being sent", name, "try again when they are complete")
        excerpts = excerpts_of(format_of(name)) if kept < size else None
        self._uploads[key] = _Upload(name, size, np.empty(kept, np.uint8).data, excerpts)


def kept_bytes(name: str, size: int) -> int:
    """Return how many bytes of a file its format needs as they are: of a text, its end."""
    known = format_of(name)
    return size if known is None or known.end_bytes is None else min(size, known.end_bytes)


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
        """Read a text and keep its recordings. InputError, and nothing is kept, if it has no error or program."""
        from tb_memplugin.readers.text import read_text  # 30 ms, which a summary does not need

        name = f"{RUN_PREFIX}/{blake2b(text, digest_size=16).hexdigest()}"
        if (known := self.get(name)) is not None:
            return known
        return self._keep(HostFile(SOURCE, "", len(text), name), Listing(read_text(text, run=name, source=SOURCE)))

    def add_file(self, file_name: str, content: memoryview, skipped: int = 0) -> PastedText:
        """Read a file and keep its recordings. Raise InputError, and keep nothing, if it has none.

        `skipped`: the bytes of a long text that `content` lacks.
        """
        shown = "".join(c if c.isprintable() and c not in "|/\\" else "_" for c in file_name)[-MAX_NAME:]
        name = f"{RUN_PREFIX}/{shown} {blake2b(content, digest_size=16).hexdigest()}"
        if (known := self.get(name)) is not None:
            return known
        # Its path is no file of this machine, so its module is not read from there.
        file = HostFile(shown, host_name(shown), len(content), name, ProgramFile("", ""))
        listing = listing_of_content(file, name, content, skipped)
        if not listing.recordings:
            problem = next((problem.text for problem in listing.problems), "it has no recording")
            raise InputError("The file cannot be shown", shown, problem)
        return self._keep(file, listing)

    def _keep(self, file: HostFile, listing: Listing) -> PastedText:
        """Keep the recordings of a text or a file, whose stamp is the name of its run."""
        pasted = PastedText(Run(file.stamp, (file,), folder="", root=""), listing)
        with self._lock:
            self._texts[pasted.run.name] = pasted
            while len(self._texts) > 1 and (len(self._texts) > MAX_TEXTS or self._total_bytes() > MAX_PASTED_BYTES):
                self._texts.popitem(last=False)
        return pasted

    def get(self, name: str) -> PastedText | None:
        with self._lock:
            return self._texts.get(name)

    def runs(self) -> list[Run]:
        """Return the runs of the texts, latest first."""
        with self._lock:
            return [pasted.run for pasted in reversed(self._texts.values())]

    def _total_bytes(self) -> int:
        return held_bytes(pasted.recordings for pasted in self._texts.values())
