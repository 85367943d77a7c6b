"""Compiled candidates in the user's cache folder.

Each program is stored under the digest of its StableHLO and of all that the compiler depends on. In front of it,
questions lead to such digests as long as the files that the step read are unchanged, so that nothing needs to start.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tb_memplugin.cache_folder import cache_folder
from tb_memplugin.errors import InputError
from tb_memplugin.fit.cache.inputs import Inputs, are_same
from tb_memplugin.fit.compile_task import Compiled
from tb_memplugin.model.fit import RECORD, Candidate, outcome_json
from tb_memplugin.readers.fit_record import read_outcome
from tb_memplugin.sizes import parse_size

FOLDER_VARIABLE = "TB_MEMPLUGIN_FIT_CACHE"
SIZE_VARIABLE = "TB_MEMPLUGIN_FIT_CACHE_SIZE"
DEFAULT_BYTES = 2 << 30
KEPT = 0.8  # of the size, once it is exceeded
BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError, InputError, zipfile.BadZipFile, EOFError)


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the cache: that of a variable, else in the user's cache folder."""
    if found := environment.get(FOLDER_VARIABLE):
        return Path(found)
    return cache_folder(environment) / "fit"


def default_bytes(environment: Mapping[str, str] = os.environ) -> int:
    """Return the size that the cache may have."""
    return parse_size(environment[SIZE_VARIABLE]) if environment.get(SIZE_VARIABLE) else DEFAULT_BYTES


@dataclass(frozen=True)
class Cache:
    """Compiled programs and questions in a folder. Whatever is damaged, or cannot be written, is not there."""

    folder: Path
    most: int = DEFAULT_BYTES

    def find(self, question: str, candidate: Candidate, environment: Mapping[str, str]) -> Compiled | None:
        """Return the answer to a question, if what the step read is unchanged."""
        try:
            found = json.loads(self._path(question, "question").read_text())
            return self.get(found["key"], candidate) if are_same(found["inputs"], environment) else None
        except BROKEN:
            return None

    def get(self, key: str, candidate: Candidate) -> Compiled | None:
        """Return a compiled program as that of a candidate."""
        path = self._path(key, "program")
        try:
            with zipfile.ZipFile(path) as file:
                files = {name: file.read(name) for name in file.namelist()}
            outcome = replace(read_outcome(files.pop(RECORD), str(path)), candidate=candidate)
            os.utime(path)  # it is the oldest that goes
        except BROKEN:
            return None
        return Compiled(outcome, files, is_cached=True)

    def put(self, key: str, compiled: Compiled) -> None:
        """Store a compiled program."""
        with suppress(OSError), replacing(self._path(key, "program")) as partial:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
                file.writestr(RECORD, json.dumps(outcome_json(compiled.outcome)))
                for name, content in compiled.files.items():
                    file.writestr(name, content)
        self._trim()

    def answer(self, question: str, key: str, inputs: Inputs) -> None:
        """Store which program answers a question."""
        with suppress(OSError), replacing(self._path(question, "question")) as partial:
            Path(partial).write_text(json.dumps({"key": key, "inputs": inputs}))

    def _path(self, digest: str, suffix: str) -> Path:
        return self.folder / digest[:2] / f"{digest}.{suffix}"

    def has(self, key: str) -> bool:
        """Return whether there is a program, which may be damaged."""
        return self._path(key, "program").exists()

    def content(self) -> tuple[int, int]:
        """Return the number of compiled programs, and the bytes of all files."""
        found = self._files()
        return sum(path.suffix == ".program" for _, _, path in found), sum(size for _, size, _ in found)

    def clear(self) -> None:
        """Delete all programs and questions."""
        for _, _, path in self._files():
            with suppress(OSError):
                path.unlink()

    def _files(self) -> list[tuple[int, int, Path]]:
        """List the files with the time of their last use, in nanoseconds, and their size."""
        found = []
        with suppress(OSError):
            for path in self.folder.glob("??/*"):
                with suppress(OSError):  # deleted by another process
                    status = path.stat()
                    found.append((status.st_mtime_ns, status.st_size, path))
        return found

    def _trim(self) -> None:
        """Delete the oldest files if all together are too large."""
        found = self._files()
        excess = sum(size for _, size, _ in found) - self.most
        if excess <= 0:
            return
        excess += int(self.most * (1 - KEPT))
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            with suppress(OSError):
                path.unlink()
                excess -= size


@contextmanager
def replacing(path: Path) -> Iterator[str]:
    """Yield the path of a new file, which takes the place of a file once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, partial = tempfile.mkstemp(prefix=".", suffix=".partial", dir=path.parent)
    os.close(number)
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise
