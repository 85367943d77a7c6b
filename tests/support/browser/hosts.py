"""The three hosts as processes, and the URL of the page in each."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from support.servers import BIN, DEMO, Server, free_port, running

IN_A_HOST = r"plugin_entry\.html\?name=memory|/memory/"
HOSTS = ("standalone", "tensorboard", "xprof")


@dataclass(frozen=True)
class Host:
    name: str
    server: Server

    @property
    def api(self) -> str:
        """Return the path of the page's data below the server's URL."""
        return {
            "standalone": "api/",
            "tensorboard": "data/plugin/memory/api/",
            "xprof": "data/plugin/profile/memory/api/",
        }[self.name]

    @property
    def ours(self) -> re.Pattern[str]:
        """Return a pattern that matches the URLs of our page and files, but not the host's own."""
        return re.compile(re.escape(self.server.url) if self.name == "standalone" else IN_A_HOST)

    def address(self, state: Mapping[str, str]) -> str:
        """Return the URL of a page state; of Memory Viewer, unless the state names another tab."""
        fragment = urlencode({"tab": "memory_viewer", **state}, quote_via=quote)
        if self.name == "standalone":
            return f"{self.server.url}#{fragment}"
        if self.name == "tensorboard":
            return f"{self.server.url}#memory&{fragment}"
        run = urlencode({"tag": "memory_viewer", "run": state["run"]} if "run" in state else {"tag": "memory_viewer"})
        return f"{self.server.url}?{run}#{fragment}"


def in_host(name: str) -> pytest.MarkDecorator:
    """Return the mark of a test of what our page does by itself, which is the same in each host.

    Such tests are spread over the hosts, whose shared pages are open anyway. What differs by host is tested in all.
    """
    return pytest.mark.parametrize("host", [name], indirect=True, scope="session")


@contextmanager
def open_standalone(logs: Path, folder: Path) -> Iterator[Host]:
    port = free_port()
    command = [str(BIN / "tb-memplugin"), "serve", f"--logdir={logs}", f"--port={port}"]
    with running([*_without_root(), *command], port, folder) as server:
        yield Host("standalone", server)


@contextmanager
def open_demo(folder: Path, *runs: str) -> Iterator[Host]:
    """Start our own server on these runs of the demo."""
    for run in runs:
        shutil.copytree(DEMO / run, folder / "logs" / run)
    with open_standalone(folder / "logs", folder) as host:
        yield host


@contextmanager
def open_tensorboard(logs: Path, folder: Path, prefix: str = "") -> Iterator[Host]:
    port = free_port()
    command = [str(BIN / "tensorboard"), f"--logdir={logs}", f"--port={port}", "--load_fast=false"]
    command += [f"--path_prefix=/{prefix}"] if prefix else []
    path = f"{prefix}/" if prefix else ""
    with running([*_without_root(), *command], port, folder, ready=f"{path}data/plugins_listing") as server:
        yield Host("tensorboard", Server(server.url + path, server.log))


@contextmanager
def open_xprof(logs: Path, folder: Path) -> Iterator[Host]:
    port = free_port()
    command = [str(BIN / "tb-memplugin"), "xprof", f"--logdir={logs}", f"--port={port}"]
    with running(command, port, folder, ready="data/plugin/profile/version") as server:
        yield Host("xprof", server)


def _without_root() -> list[str]:
    """Return the command prefix that makes read-only folders read-only for root too."""
    if os.geteuid() == 0 and shutil.which("setpriv"):
        return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    return []
