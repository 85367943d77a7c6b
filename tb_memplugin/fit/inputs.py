"""Files, folders and environment variables that a step reads. Its answer is known while they stay the same.

Python reports what it opens, lists and starts as audit events. Installed packages are known by their versions. What a
compiled extension opens by itself, such as a file of weights, is not reported; the shapes in it rarely matter.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import site
import stat
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

MAX_BYTES = 256 << 20  # to read again for each question
CLOCK_SECONDS = 0.02  # the times of files lag behind the clock
LISTED = ("os.listdir", "os.scandir")
# After these, the step depends on more than files.
UNKNOWN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "urllib.Request")
ALL_NAMES = "*"  # the environment variables that there are
PACKAGE = str(Path(__file__).parent.parent)
IMPORTS = ("<frozen importlib", str(Path(importlib.__file__).parent))  # list folders to find packages

Digest = str | None  # None: not there
Inputs = dict[str, dict[str, Digest]]  # by kind: files, names in folders, paths that exist, environment variables


class Recorder:
    """Records the inputs that this process reads from `start` until `inputs`."""

    def __init__(self, own: str) -> None:
        own_folders = (os.path.join(path, "") for path in (os.path.abspath(own), PACKAGE))
        self._own = (*own_folders, *installed_folders(), "/proc/", "/sys/", "/dev/")
        self._paths: set[tuple[str, str]] = set()  # with their kind
        self._names: set[str] = set()
        self._begun_ns = 0
        self._is_known = True
        self._is_on = False

    def start(self) -> None:
        """Begin to record. It cannot be undone, only paused."""
        self._begun_ns = time.time_ns() - int(CLOCK_SECONDS * 1e9)
        self._is_on = True
        sys.addaudithook(self._hear)
        os.stat, os.lstat = self._recorded(os.stat), self._recorded(os.lstat)  # there is no audit event
        kind = type(os.environ)
        get, names = kind.__getitem__, kind.__iter__

        def record_get(environment: Any, name: Any) -> Any:
            if self._is_on:
                self._names.add(os.fsdecode(name))
            return get(environment, name)

        def record_names(environment: Any) -> Any:
            if self._is_on:
                self._names.update((ALL_NAMES, *map(os.fsdecode, names(environment))))
            return names(environment)

        kind.__getitem__, kind.__iter__ = record_get, record_names  # type: ignore[method-assign]

    def _recorded(self, ask: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def call(path: Any, *positional: Any, **named: Any) -> os.stat_result:
            if self._is_on and named.get("dir_fd") is None:
                self._note(path, "existing")
            return ask(path, *positional, **named)

        return call

    def inputs(self) -> Inputs | None:
        """Stop recording, and return what was read, with digests; None where it cannot be known."""
        self._is_on = False
        for module in list(sys.modules.values()):
            if isinstance(file := getattr(module, "__file__", None), str):
                self._note(file, "files")
        found: Inputs = {"files": {}, "folders": {}, "existing": {}, "environment": {}}
        size = 0
        for path, kind in sorted(self._paths):
            if kind != "existing" and self._is_newer(path):
                return None
            size += _size(path) if kind == "files" else 0
            if not self._is_known or size > MAX_BYTES:
                return None
            found[kind][path] = digest(path, kind)
        found["environment"] = {name: digest(name, "environment") for name in sorted(self._names)}
        return found if self._is_known else None

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, str | bytes | os.PathLike) and _reads(mode, flags):
                self._note(path, "files")
        elif event in LISTED:
            frame: FrameType | None = sys._getframe(1)
            if frame is not None and not frame.f_code.co_filename.startswith(IMPORTS):
                self._note(arguments[0] or os.curdir, "folders")
        elif event == "sqlite3.connect":
            self._note(arguments[0], "files")
        elif event.startswith(UNKNOWN):
            self._is_known = False

    def _note(self, path: Any, kind: str) -> None:
        if isinstance(path, int):
            return
        absolute = os.path.abspath(os.fsdecode(path))
        if not absolute.startswith(self._own) and not absolute.endswith(".pyc"):
            self._paths.add((absolute, kind))

    def _is_newer(self, path: str) -> bool:
        """Return whether a file has changed since the start, so that its digest may not be that of what was read."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        return max(status.st_mtime_ns, status.st_ctime_ns) >= self._begun_ns


def _reads(mode: str | None, flags: int | None) -> bool:
    if mode is None:
        return (flags or 0) & (os.O_WRONLY | os.O_RDWR) != os.O_WRONLY
    return "r" in mode or "+" in mode


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


@lru_cache(1)
def installed_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages, as named and without links."""
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


def are_same(inputs: Mapping[str, Mapping[str, Digest]], environment: Mapping[str, str]) -> bool:
    """Return whether all inputs are as they were."""
    return all(
        digest(name, kind, environment) == before
        for kind in ("environment", "existing", "folders", "files")
        for name, before in inputs[kind].items()
    )


def digest(name: str, kind: str, environment: Mapping[str, str] | None = None) -> Digest:
    """Return the digest of a file, of the names in a folder, or of an environment variable."""
    if kind == "environment":
        variables = os.environ if environment is None else environment
        value = "\0".join(sorted(variables)) if name == ALL_NAMES else variables.get(name)
        return None if value is None else sha256(os.fsencode(value))
    try:
        if kind == "existing":
            return str(stat.S_IFMT(os.stat(name).st_mode))
        if kind == "folders":
            return sha256("\0".join(sorted(os.listdir(name))).encode(errors="surrogateescape"))
        status = os.stat(name)
        if not stat.S_ISREG(status.st_mode):
            return "not a file"
        return _file_digest(name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    except OSError:
        return None


@lru_cache(4096)
def _file_digest(path: str, *_: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()
