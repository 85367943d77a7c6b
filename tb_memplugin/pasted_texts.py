"""Texts that people pasted, read into recordings and kept for as long as the server runs; never written anywhere."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

from tb_memplugin.logdir import HostFile, Run
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.oom_text import read_oom_text

RUN = "pasted"
SOURCE = "the pasted text"
MAX_TEXTS = 50
MAX_BYTES = 256 << 20  # of recordings; a dump of 150,000 chunks holds 20 MB


@dataclass(frozen=True, slots=True)
class Pasted:
    """A text as a run of its own, named after what is in it: the same text is the same run."""

    run: Run
    recordings: list[Recording]


class PastedTexts:
    """The last ones, within bounds. Safe to ask from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Pasted] = OrderedDict()

    def add(self, text: bytes) -> Pasted:
        """InputError where no error is in the text; then nothing is kept of it."""
        name = f"{RUN}/{blake2b(text, digest_size=4).hexdigest()}"
        if (known := self.get(name)) is not None:
            return known
        found = Pasted(
            Run(name, (HostFile(SOURCE, "", len(text), name),), folder="", root=""),
            read_oom_text(text, run=name, source=SOURCE),
        )
        with self._lock:
            self._kept[name] = found
            while len(self._kept) > 1 and (len(self._kept) > MAX_TEXTS or self._held() > MAX_BYTES):
                self._kept.popitem(last=False)
        return found

    def get(self, name: str) -> Pasted | None:
        with self._lock:
            return self._kept.get(name)

    def runs(self) -> list[Run]:
        """The last one first."""
        with self._lock:
            return [pasted.run for pasted in reversed(self._kept.values())]

    def _held(self) -> int:
        return sum(recording.nbytes for pasted in self._kept.values() for recording in pasted.recordings)
