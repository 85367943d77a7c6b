"""A process that imports jax or torch once, and forks for each candidate: compiling one mostly takes less time.

The server starts no backend and no threads of jax. Each fork leads a process group, as a process from a command does.
"""

import atexit
import importlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from tb_memplugin.fit.cache import compiler_variables
from tb_memplugin.fit.inputs import with_package
from tb_memplugin.fit.process import adopt_orphans, descendants, end_with_parent, exit_status, kill_tree

HAS_FORKS = sys.platform == "linux" and hasattr(os, "pidfd_open")
MAX_MESSAGE = 1 << 16
MAX_IDLE_SECONDS = 300
START_SECONDS = 60
OF_JAX, OF_TORCH = "jax.experimental.topologies", "tb_memplugin.torch_fit.tracing"


class WarmServer:
    """This process's end of a server."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.imported_with = compiler_variables(environment)
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(START_SECONDS)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tb_memplugin.fit.warm_server", str(theirs.fileno())],
                env=with_package(environment),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def ask(self, message: Mapping[str, Any], *descriptors: int) -> int:
        """Return the server's answer, a number. OSError if it has ended."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(message).encode()], descriptors)
            answer = self._socket.recv(MAX_MESSAGE)
        if not answer:
            raise BrokenPipeError
        return int(answer)

    def close(self) -> None:
        """End the server. Its forks end with their own pipes."""
        self._socket.close()
        self._process.kill()
        self._process.wait()


class ForkedProcess:
    """A process that a warm server forked. It ends when its pipe closes, as when this process dies."""

    def __init__(self, server: WarmServer, folder: str, output: BinaryIO, imports: str) -> None:
        self._server = server
        theirs, self._pipe = os.pipe()
        try:
            self.pid = server.ask({"folder": folder, "imports": imports}, theirs, output.fileno())
            self._watched = os.pidfd_open(self.pid)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(theirs)

    def status(self) -> int | None:
        if not select.select([self._watched], [], [], 0)[0]:
            return None
        return self._server.ask({"status": self.pid})

    def end(self) -> None:
        kill_tree(self.pid)
        with suppress(OSError):
            self._server.ask({"let_go": self.pid})
        os.close(self._watched)
        os.close(self._pipe)


_server: WarmServer | None = None
_server_lock = threading.Lock()


def forked(
    folder: str, output: BinaryIO, environment: Mapping[str, str], imports: str = OF_JAX
) -> ForkedProcess | None:
    """Return a process that compiles or traces what a folder asks for; None where there can be no server."""
    if not HAS_FORKS:
        return None
    for _ in range(2):  # a server that was idle has ended, so try again with a new one
        try:
            return ForkedProcess(_server_for(environment), folder, output, imports)
        except (OSError, ValueError):
            close_server()
    return None


def _server_for(environment: Mapping[str, str]) -> WarmServer:
    global _server
    with _server_lock:
        if _server is not None and _server.imported_with != compiler_variables(environment):
            _server.close()
            _server = None
        if _server is None:
            _server = WarmServer(environment)
        return _server


def close_server() -> None:
    """End the server of this process, if it has one."""
    global _server
    with _server_lock:
        if _server is not None:
            _server.close()
        _server = None


atexit.register(close_server)


def serve(number: int) -> None:
    """Fork for each message, until the socket closes or nobody has asked for a while."""
    import tb_memplugin.fit.compiling.child  # noqa: F401

    warnings.simplefilter("ignore")  # about threads at a fork; those of linear algebra restart
    adopt_orphans()
    children: dict[int, str] = {}  # the folder of each, by process id
    with socket.socket(fileno=number) as asked:
        while children or select.select([asked], [], [], MAX_IDLE_SECONDS)[0]:
            content, descriptors, _, _ = socket.recv_fds(asked, MAX_MESSAGE, 2)
            if not content:  # the command was killed
                end_orphans()
                for folder in children.values():
                    shutil.rmtree(folder, ignore_errors=True)
                return
            message = json.loads(content)
            if "folder" in message:
                with suppress(Exception):  # without jax or torch, the fork reports the error
                    importlib.import_module(message["imports"])
                answer = _fork(message, asked, descriptors)
                children[answer] = message["folder"]
            elif "status" in message:
                answer = exit_status(message["status"]) or 0
            else:
                answer = message["let_go"]
                os.waitpid(answer, 0)
                children.pop(answer, None)
                if not children:
                    end_orphans()
            asked.send(str(answer).encode())


def end_orphans() -> None:
    """End the processes that steps have detached from themselves."""
    for pid in descendants(os.getpid()):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _fork(message: Mapping[str, Any], asked: socket.socket, descriptors: list[int]) -> int:
    pid = os.fork()
    if pid:
        for descriptor in descriptors:
            os.close(descriptor)
        return pid
    status = 1
    try:
        asked.close()
        pipe, output = descriptors
        os.setsid()
        end_with_parent(pipe)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        from tb_memplugin.fit.compiling.child import main

        status = main(message["folder"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
