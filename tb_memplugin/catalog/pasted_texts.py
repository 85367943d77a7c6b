"""Recordings of texts that users paste, and of files that they drop on the page.

They are kept in memory while the server runs and never written to disk.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

from tb_memplugin.catalog.held_bytes import held_bytes
from tb_memplugin.catalog.listing import Listing, listing_of_content
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import HostFile, Run
from tb_memplugin.logdir.suffixes import host_name
from tb_memplugin.model.recording import Recording

RUN_PREFIX = "pasted"
SOURCE = "the pasted text"
MAX_TEXTS = 50
MAX_BYTES = 256 << 20  # of recordings; a dump of 150,000 chunks takes 20 MB
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
        name = f"{RUN_PREFIX}/{blake2b(text, digest_size=4).hexdigest()}"
        if (known := self.get(name)) is not None:
            return known
        from tb_memplugin.readers.oom_text import read_oom_text

        pasted = PastedText(
            Run(name, (HostFile(SOURCE, "", len(text), name),), folder="", root=""),
            Listing(read_oom_text(text, run=name, source=SOURCE)),
        )
        self._keep(pasted)
        return pasted

    def add_file(self, file_name: str, content: memoryview) -> PastedText:
        """Read a file and keep its recordings. Raise InputError, and keep nothing, if it has none."""
        shown = "".join(c if c.isprintable() and c not in "|/\\" else "_" for c in file_name)[-MAX_NAME:]
        name = f"{RUN_PREFIX}/{shown} {blake2b(content, digest_size=4).hexdigest()}"
        if (known := self.get(name)) is not None:
            return known
        file = HostFile(shown, host_name(shown), len(content), name)
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
            while len(self._texts) > 1 and (len(self._texts) > MAX_TEXTS or self._total_bytes() > MAX_BYTES):
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
