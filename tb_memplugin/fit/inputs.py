"""Files and folders that a step reads. A cached answer is valid while they, and the environment, are unchanged.

Python reports files, folders and processes that it opens, lists or starts as audit events. Installed packages are
identified by their versions.

Python reports no event when a step asks whether a path exists. Such paths are mostly in the folder of a file that the
step reads, or in the current folder, so the names in these folders are inputs too.

Two kinds of inputs are missed: whether a path exists in a folder from which the step reads no file, and files that a
compiled extension opens by itself, such as weights, whose shapes rarely matter.
"""

import hashlib
import importlib
import os
import site
import stat
import sys
import sysconfig
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict

from tb_memplugin.model.fit import RECORD

MAX_BYTES = 256 << 20  # inputs are read again for each question, so an answer with more of them is not cached
CLOCK_SECONDS = 0.02  # the times of files lag behind the clock
LISTED = ("os.listdir", "os.scandir")
# A step that causes one of these events depends on more than files.
UNKNOWN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "urllib.Request")
PACKAGE = str(Path(__file__).parent.parent)
# Code that lists folders for its own purposes: Python to find packages, and this module.
LISTERS = ("<frozen importlib", str(Path(importlib.__file__).parent), PACKAGE)
BYTECODE = "__pycache__"

Digest = str | None  # None: not there


class Inputs(TypedDict):
    """Digests by path: of the content of files, and of the names in folders."""

    files: dict[str, Digest]
    folders: dict[str, Digest]


class Recorder:
    """Records the inputs that this process reads from `start` until `inputs`."""

    def __init__(self, own: str) -> None:
        own_folders = (os.path.join(path, "") for path in (os.path.abspath(own), PACKAGE))
        self._own = (*own_folders, *installed_folders(), "/proc/", "/sys/", "/dev/")
        self._files: set[str] = set()
        self._folders: dict[str, Digest] = {}
        self._begun_ns = 0
        self._is_known = True
        self._is_on = False

    def start(self) -> None:
        """Begin to record. An audit hook can be paused, but not removed."""
        self._begun_ns = time.time_ns() - int(CLOCK_SECONDS * 1e9)
        self._note_folder(os.getcwd())
        self._is_on = True
        sys.addaudithook(self._hear)

    def inputs(self) -> Inputs | None:
        """Stop recording, and return the inputs with their digests; None where they cannot all be known."""
        self._is_on = False
        for module in list(sys.modules.values()):
            if isinstance(file := getattr(module, "__file__", None), str):
                self._note_file(file)
        found = [status for status in map(_status, self._files) if status is not None]
        # Of a file that has changed since the start, the step may have read another content.
        is_newer = any(max(one.st_mtime_ns, one.st_ctime_ns) >= self._begun_ns for one in found)
        if not self._is_known or is_newer or sum(one.st_size for one in found) > MAX_BYTES:
            return None
        return {"files": {path: file_digest(path) for path in sorted(self._files)}, "folders": self._folders}

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, str | bytes | os.PathLike) and _reads(mode, flags):
                self._note_file(path)
        elif event in LISTED:
            frame: FrameType | None = sys._getframe(1)
            if frame is not None and not frame.f_code.co_filename.startswith(LISTERS):
                self._note_folder(arguments[0] or os.curdir)
        elif event == "sqlite3.connect":
            self._note_file(arguments[0])
        elif event.startswith(UNKNOWN):
            self._is_known = False

    def _note_file(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Note a file and the names in its folder; for bytecode, the names in the folder of its source."""
        absolute = os.path.abspath(os.fsdecode(path))
        if absolute.startswith(self._own):
            return
        if not absolute.endswith(".pyc"):
            self._files.add(absolute)
        folder, name = os.path.split(os.path.dirname(absolute))
        self._note_folder(folder if name == BYTECODE else os.path.join(folder, name))

    def _note_folder(self, path: str | bytes | int) -> None:
        """Note the names in a folder before the step can have asked for one of them."""
        if isinstance(path, int):
            return
        absolute = os.path.abspath(os.fsdecode(path))
        if absolute not in self._folders and not os.path.join(absolute, "").startswith(self._own):
            self._folders[absolute] = names_digest(absolute)


def _reads(mode: str | None, flags: int | None) -> bool:
    if mode is None:
        return (flags or 0) & (os.O_WRONLY | os.O_RDWR) != os.O_WRONLY
    return "r" in mode or "+" in mode


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


@lru_cache(1)
def installed_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages, as named and with links resolved."""
    paths = sysconfig.get_paths()
    found = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found |= {*site.getsitepackages(), site.getusersitepackages()}
    found = {os.path.abspath(path) for path in found} | {os.path.realpath(path) for path in found}
    return tuple(sorted(os.path.join(path, "") for path in found))


def with_package(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Python finds this package, which may be neither installed nor in PYTHONPATH."""
    folder = os.path.dirname(PACKAGE)
    if os.path.join(folder, "").startswith(installed_folders()):
        return dict(environment)
    paths = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return {**environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def are_same(inputs: Inputs) -> bool:
    """Return whether all inputs are unchanged."""
    return all(names_digest(path) == before for path, before in inputs["folders"].items()) and all(
        file_digest(path) == before for path, before in inputs["files"].items()
    )


def names_digest(folder: str) -> Digest:
    """Return the digest of the names in a folder, except bytecode and runs, which Python and `fit` write."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name != BYTECODE and not _is_run(entry))
    except OSError:
        return None
    return sha256("\0".join(names).encode(errors="surrogateescape"))


def _is_run(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and os.path.exists(os.path.join(entry.path, RECORD))


def file_digest(path: str) -> Digest:
    """Return the digest of a file's content."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return "not a file"
        return _content_digest(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    except OSError:
        return None


@lru_cache(4096)
def _content_digest(path: str, *_: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()
