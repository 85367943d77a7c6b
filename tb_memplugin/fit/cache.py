"""Compiled candidates in the user's cache folder.

Each program is stored under the digest of its StableHLO and of everything that the compiler depends on. A question, the
digest of a request to compile, leads to such a program while the files and folders that the step read are unchanged,
so that no process needs to start. A question contains all environment variables except those of a terminal or session.
"""

import io
import json
import os
import platform
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

from tb_memplugin.cache_folder import CacheSettings
from tb_memplugin.errors import InputError
from tb_memplugin.fit.compile_task import Compiled
from tb_memplugin.fit.inputs import PACKAGE, Inputs, are_same, installed_folders, sha256
from tb_memplugin.model.fit import RECORD, Candidate, outcome_json
from tb_memplugin.readers.fit_record import read_outcome

FORMAT = 1
MACHINE = (platform.machine(), os.cpu_count())  # users may share the folder between machines
# Variables that jax, the compilers or Python read by themselves, many of them while jax is imported.
OF_JAX = ("JAX_", "XLA_", "TPU_", "LIBTPU", "TF_", "CUDA_", "NVIDIA_")
OF_PYTHON = ("PYTHON", "LD_", "OMP_", "OPENBLAS_", "MKL_")
SETTINGS = CacheSettings("fit", 2 << 30)
# Variables that shells, terminals, sessions and pytest set. They differ between windows, or between calls in one, and
# do not change what a step computes. A question contains the current folder without these.
OF_SHELLS = {"PWD", "OLDPWD", "SHLVL", "_", "PS1", "LS_COLORS"}
OF_TERMINALS = {"TERM", "COLORTERM", "COLUMNS", "LINES", "WINDOWID", "VTE_VERSION", "STY", "WINDOW", "WT_SESSION"}
OF_SESSIONS = {"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SESSION_MANAGER", "INVOCATION_ID", "JOURNAL_STREAM"}
UNREAD = OF_SHELLS | OF_TERMINALS | OF_SESSIONS | {"PYTEST_CURRENT_TEST", *SETTINGS.variables}
UNREAD_GROUPS = (
    *("TERM_", "TMUX", "ITERM_", "KITTY_", "KONSOLE_", "WEZTERM_", "GNOME_TERMINAL_", "VSCODE_"),
    *("SSH_", "DBUS_", "XDG_SESSION_"),
)


def compiler_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that jax and the compilers read by themselves."""
    return {name: value for name, value in sorted(environment.items()) if name.startswith((*OF_JAX, *OF_PYTHON))}


def question_key(request: Mapping[str, Any]) -> str:
    """Return the digest of a request to compile: its values, and the versions of all installed packages."""
    variables = request["environment"]
    read = {name: variables[name] for name in variables.keys() - UNREAD if not name.startswith(UNREAD_GROUPS)}
    return _digest([FORMAT, sys.version, MACHINE, _stamp(), _installed(), {**request, "environment": read}])


def program_key(lowered: Any, target: str, options: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """Return the digest of a lowered program and of everything that its compiler depends on.

    Source lines are part of a program: the page shows them.
    """
    import jax

    lowered = getattr(lowered, "lowered", lowered)  # in wrappers of Flax and Equinox
    inner = getattr(lowered, "_lowering", None)
    devices = [getattr(device, "id", None) for device in getattr(inner, "_device_list", None) or ()]
    more = [str(getattr(inner, name, None)) for name in ("_compiler_options_kvs", "_donated_invars", "_platforms")]
    config = sorted((str(name), str(value)) for name, value in getattr(jax.config, "values", {}).items())
    variables = compiler_variables(os.environ)
    program = [_content(lowered), target, dict(options), dict(versions)]
    return _digest([FORMAT, MACHINE, _stamp(), *program, devices, more, config, variables])


def _content(lowered: Any) -> str:
    """Return the digest of StableHLO with its source lines."""
    buffer = io.BytesIO()
    try:
        lowered.compiler_ir("stablehlo").operation.write_bytecode(buffer)
    except (AttributeError, TypeError):
        return sha256(lowered.as_text().encode())
    return sha256(buffer.getbuffer())


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode())


@lru_cache(1)
def _stamp() -> str:
    """Return the digest of the sizes and times of this package's files, which developers change within a version."""
    files = sorted(path for path in Path(PACKAGE).rglob("*") if path.suffix in (".py", ".so", ".pyd"))
    return _digest([(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files])


def _installed() -> list[str]:
    """Return the names of installed packages, which contain their versions."""
    found = []
    for folder in installed_folders():
        with suppress(OSError):
            found += [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    return sorted(found)


# A program expands to at most so many bytes, and as many times its size in the cache. Stored ones expand by up to 20.
EXPANDED_BYTES, EXPANDED_SHARE = 64 << 20, 50
KEPT = 0.8  # a cache above its size is trimmed to this share of it, a choice, and so not at every write
SUFFIXES = (".program", ".question", ".partial")
# What reading a damaged file raises; a RuntimeError is that of an encrypted or unknown compression.
BROKEN = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, InputError, EOFError),
    *(zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError, OverflowError),
)


@dataclass(frozen=True)
class Cache:
    """Compiled programs and questions in a folder. Files that are damaged, or cannot be written, count as missing."""

    folder: Path
    most: int = SETTINGS.default_bytes

    def find(self, question: str, candidate: Candidate) -> Compiled | None:
        """Return the program that answers a question, if the files and folders that the step read are unchanged."""
        try:
            found = json.loads(self._path(question, "question").read_text())
            return self.get(found["key"], candidate) if are_same(found["inputs"]) else None
        except BROKEN:
            return None

    def get(self, key: str, candidate: Candidate) -> Compiled | None:
        """Return the program stored under a key, as the program of a candidate."""
        path = self._path(key, "program")
        try:
            with zipfile.ZipFile(path) as file:
                _check_members(file.infolist(), path.stat().st_size)
                files = {name: file.read(name) for name in file.namelist()}
            outcome = replace(read_outcome(files.pop(RECORD), str(path)), candidate=candidate)
            os.utime(path)  # files that were unused for longest are deleted first
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
        if not digest.isalnum():
            raise ValueError(digest)
        return self.folder / digest[:2] / f"{digest}.{suffix}"

    def has(self, key: str) -> bool:
        """Return whether a program is stored under a key; it may be damaged."""
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
        """List the files of this cache with the time of their last use, in nanoseconds, and their size."""
        found = []
        with suppress(OSError):
            for path in self.folder.glob("??/*"):
                with suppress(OSError):  # deleted by another process
                    status = path.stat()
                    if path.suffix in SUFFIXES and not path.parent.is_symlink():
                        found.append((status.st_mtime_ns, status.st_size, path))
        return found

    def _trim(self) -> None:
        """Delete the least recently used files if the folder is too large."""
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


def _check_members(members: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Raise ValueError for a member outside of the folder that it is written to, or for too much content."""
    if any(PurePath(each.filename).is_absolute() or ".." in PurePath(each.filename).parts for each in members):
        raise ValueError("a path that leads out of the folder")
    if sum(each.file_size for each in members) > EXPANDED_BYTES + EXPANDED_SHARE * size:
        raise ValueError("too large")


@contextmanager
def replacing(path: Path) -> Iterator[str]:
    """Yield a path to write to; the new file replaces `path` once it is complete."""
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
