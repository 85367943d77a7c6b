"""Files and connections of a script: what it writes goes to a temporary folder, and the network is unreachable.

Python reports files that are opened, changed and connected to as audit events. A write outside of the folder is
refused as on a read-only disk, unless it goes through `open`, `os.open` or `os.mkdir`: those write into the folder, and
the script finds there what it wrote. Compiled extensions, such as TensorStore, and other processes report nothing: on
Linux the kernel limits them to the folder. Where it cannot, no processes are started.
"""

import builtins
import errno
import io
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from tb_memplugin.fit.script.sandbox import DEVICES, confine
from tb_memplugin.sizes import counted

# Audit events that change files, by the numbers of their arguments that are paths.
CHANGES = {
    **{f"os.{name}": (0,) for name in ("chmod", "chown", "mkdir", "remove", "rmdir", "truncate", "utime", "setxattr")},
    **{f"os.{name}": (0, 1) for name in ("rename", "link")},
    **{"os.symlink": (1,), "shutil.rmtree": (0,)},
}
CONNECTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind")
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
LISTED, SHOWN = 20, 5  # different places; a script that writes thousands of files writes similar ones
ELSEWHERE = (*DEVICES, "/proc/self/")  # writes to these change no files


class Isolation:
    """Keeps the writes of this process in a folder, and notes what it tried."""

    def __init__(self, folder: str, allowed: str) -> None:
        self._folder = os.path.realpath(folder)
        self._allowed = tuple(os.path.join(os.path.realpath(each), "") for each in (folder, allowed))
        self._inside = threading.local()
        self.written: dict[str, None] = {}
        self.connected: dict[str, None] = {}
        self.started: dict[str, None] = {}
        self.saved: dict[str, None] = {}  # functions of libraries that would have saved
        self.is_on = False
        self._is_confined = False

    def start(self) -> None:
        """Begin. The process keeps its hooks; `is_on` pauses them."""
        builtins.open = io.open = self._redirected(io.open, _opens_to_write)
        os.open = self._redirected(os.open, lambda rest, _: _flags_write(rest[0] if rest else 0))
        os.mkdir = self._redirected(os.mkdir, lambda *_: True)
        for name in ("stat", "lstat", "listdir", "scandir", "access"):
            setattr(os, name, self._redirected(getattr(os, name), lambda *_: False))
        self._is_confined = confine(self._allowed)
        self.is_on = True
        sys.addaudithook(self._hear)

    def _redirected(self, function: Any, writes: Callable[[tuple[Any, ...], Any], bool]) -> Any:
        def call(path: Any = ".", *rest: Any, **named: Any) -> Any:
            return function(self.place(path, writes(rest, named)) if self.is_on else path, *rest, **named)

        return call

    def place(self, path: Any, writes: bool) -> Any:
        """Return the path in the folder, of a file that is written, or that was written before."""
        if not isinstance(path, str | bytes | os.PathLike):
            return path
        scheme, separator, rest = os.fsdecode(path).partition("://")  # of a store that cannot be reached
        absolute = f"/{scheme}/{rest}" if separator else os.path.abspath(scheme)
        if absolute.startswith((*self._allowed, *ELSEWHERE)):
            return path
        copy = self._folder + absolute
        was_on, self.is_on = self.is_on, False
        try:
            if writes:
                self.note(self.written, absolute)
                os.makedirs(os.path.dirname(copy), exist_ok=True)
            is_own = separator or (os.path.exists(copy) and (os.path.isfile(copy) or not os.path.exists(absolute)))
            return copy if writes or is_own else path
        finally:
            self.is_on = was_on

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event in CONNECTS:
            address = arguments[0] if event.startswith("socket.get") else arguments[-1]
            if isinstance(address, str | bytes) and event in ("socket.connect", "socket.bind"):
                return  # a socket of this machine's file system
            self.note(self.connected, str(address[0] if isinstance(address, tuple) else address))
            raise OSError(errno.ENETUNREACH, "Network is unreachable (tb-memplugin fit runs scripts offline)")
        if event in STARTS or event.startswith("os.spawn"):
            self.note(self.started, _text(arguments[0]))
            if self._is_confined:
                return
            raise PermissionError(errno.EPERM, "A script that tb-memplugin fit runs starts no processes")
        if event == "open" and _flags_write(arguments[2] or 0):
            self._refuse_outside(arguments[0])
        for number in CHANGES.get(event, ()):
            self._refuse_outside(arguments[number])

    def _refuse_outside(self, path: Any) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            absolute = os.path.abspath(os.fsdecode(path))
            if not os.path.join(absolute, "").startswith((*self._allowed, *ELSEWHERE)):
                self.note(self.written, absolute)
                raise OSError(errno.EROFS, "Read-only file system (in tb-memplugin fit)", absolute)

    def note(self, noted: dict[str, None], text: str) -> None:
        """Note what the script tried in one of the lists, such as `saved`."""
        if len(noted) < LISTED:
            noted[text] = None

    def tried(self) -> list[str]:
        """Return lines about what the script tried."""
        lists = (
            ("The script wrote into a temporary folder, or was refused, in place of", self.written),
            ("The script runs offline; it tried to reach", self.connected),
            (f"The script {'started' if self._is_confined else 'may not start'} other processes", self.started),
            ("Nothing is saved; the script called", self.saved),
        )
        return [f"{text}: {_some(list(noted))}" for text, noted in lists if noted]


def _some(texts: list[str]) -> str:
    more = f" and {counted(len(texts) - SHOWN, 'other')}" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def _text(command: Any) -> str:
    return os.fsdecode(command) if isinstance(command, str | bytes) else str(command)


def _opens_to_write(rest: tuple[Any, ...], named: Any) -> bool:
    mode = rest[0] if rest else named.get("mode", "r")
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def _flags_write(flags: int) -> bool:
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
