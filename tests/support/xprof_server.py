"""XProf's own server with our page in it, as a process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.servers import BIN, Server, free_port, running

PREFIX = "data/plugin/profile/"


@contextmanager
def serving(logs: Path, folder: Path, before: Sequence[str] = ()) -> Iterator[Server]:
    port = free_port()
    command = [str(BIN / "tb-memplugin"), "xprof", f"--logdir={logs}", f"--port={port}"]
    with running([*before, *command], port, folder, ready=f"{PREFIX}version") as server:
        yield server
