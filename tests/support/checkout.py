"""A copy of the demo for tests, and a guard that fails tests that write into the checkout."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_DEMO = "TB_MEMPLUGIN_TESTS_DEMO"  # processes that a test run starts share its copy
# Caches of the tools that run tests, and what `make` builds before them.
_OTHERS = {".git", ".venv", "node_modules", "__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache"}
_OTHERS |= {"build", "dist"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# The arguments of audit events that are paths of what is changed. The last argument is a folder's descriptor, or -1.
_CHANGED = {
    "os.chmod": (0,),
    "os.link": (1,),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.symlink": (1,),
    "os.utime": (0,),
}
_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}


def demo_copy(repository: Path) -> Path:
    """Return a copy of demo_logdir/ that contains only its own files.

    XProf, which `make demo` starts, writes its caches beside the profiles that it serves, and tests count files.
    """
    if shared := os.environ.get(_DEMO):
        return Path(shared)
    copy = Path(tempfile.mkdtemp(prefix="tb_memplugin-tests-")).resolve() / "demo_logdir"
    for name in _own_files(repository, "demo_logdir"):
        (copy.parent / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(repository / name, copy.parent / name)
    os.environ[_DEMO] = str(copy)
    atexit.register(_remove, copy.parent, os.getpid())
    return copy


def _own_files(repository: Path, folder: str) -> list[str]:
    """Return the files below a folder that git has, or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder]
    listed = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (repository / name).is_file()]


def _remove(folder: Path, process: int) -> None:
    """Remove a folder at the end of the process that made it, but not at that of a fork."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class Guard:
    """Watches folders that no test may write into.

    An audit hook sees what this process does. What other processes do is seen by comparing the folders' files.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._prefixes = tuple(f"{folder}{os.sep}" for folder in folders)
        self._written: list[str] = []
        self._started = False
        self._files = self._list()
        sys.addaudithook(self._audit)

    def problems(self, compare: bool) -> list[str]:
        """Return what was written since the last call. Files are also compared if a process was started since."""
        found, self._written = self._written, []
        if compare or self._started or found:
            self._started = False
            before, self._files = self._files, self._list()
            changed = {path for path, _ in before.items() ^ self._files.items()}
            found += [f"{_change(path, before, self._files)}: {path}" for path in sorted(changed)]
        return list(dict.fromkeys(found))

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITES:
                self._check(event, path)
        elif event in _CHANGED:
            if arguments[-1] == -1:
                for position in _CHANGED[event]:
                    self._check(event, arguments[position])
        elif event in _STARTS:
            self._started = True

    def _check(self, event: str, path: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        try:
            name = os.path.abspath(os.fsdecode(path))
        except OSError:  # the current folder was removed
            return
        if name.startswith(self._prefixes) and _OTHERS.isdisjoint(name.split(os.sep)):
            self._written.append(f"{event}: {name}")

    def _list(self) -> dict[str, tuple[int, int]]:
        return {path: state for folder in self._folders for path, state in _files(str(folder))}


def _files(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each file below a folder with its size and time."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in _OTHERS:
                continue
            state = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(state.st_mode):
                yield from _files(entry.path)
            else:
                yield entry.path, (state.st_size, state.st_mtime_ns)


def _change(path: str, before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> str:
    if path not in before:
        return "created"
    return "changed" if path in after else "removed"
