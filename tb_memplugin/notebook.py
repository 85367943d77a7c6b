"""Magics for notebooks: `%load_ext tb_memplugin`, then `%memory LOGDIR`, or `%%memory` at the head of a cell."""

from __future__ import annotations

import atexit
import json
import linecache
import re
import shlex
import subprocess
import sys
import weakref
from collections import Counter
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

from markupsafe import Markup

from tb_memplugin.errors import InputError
from tb_memplugin.questions.asking.html import document, folded, table
from tb_memplugin.sizes import bytes_text, counted

HEIGHT = 800  # of the page's frame, in pixels
MAX_ROWS = 10  # of a table
LISTENS = re.compile(r" at http://\S+?:(\d+)/")
USAGE = "%memory LOGDIR [HEIGHT] shows the page; %%memory at the head of a cell shows what the cell needs"

# A notebook on another machine reaches the page through the notebook server's proxy, where there is one.
FRAME = """<iframe width="100%" height="{height}" style="border: 1px solid" title="Memory"></iframe>
<script>(() => {{
  const frame = document.currentScript.previousElementSibling;
  const config = document.getElementById("jupyter-config-data");
  const base = config === null ? document.body.dataset.baseUrl : JSON.parse(config.textContent).baseUrl;
  const proxied = {proxied} && base !== undefined;
  frame.dataset.notebookTheme = document.body.dataset.jpThemeLight === "false" ? "dark" : "light";
  frame.src = proxied ? `${{base.replace(/\\/$/, "")}}/proxy/{port}/` : "http://localhost:{port}/";
}})()</script>"""


def load(shell: Any) -> None:
    """Add the magics to an IPython shell, and show recordings as HTML."""
    shell.register_magic_function(memory, "line_cell", "memory")
    html = shell.display_formatter.formatters["text/html"]
    html.for_type_by_name("tb_memplugin.model.recording", "Recording", _recording_html)


def memory(line: str, cell: str | None = None) -> None:
    """Show the page of a logdir, or run a cell and show what it compiled and what stays live."""
    from IPython.display import HTML, display

    from tb_memplugin.capture.program_report import ipython

    try:
        if cell is not None:
            before = Before()
            ipython().run_cell(cell)
            display(HTML(before.difference()))
        else:
            show_page(line)
    except InputError as error:
        print(error, file=sys.stderr)


def show_page(line: str) -> None:
    """Show the page of a logdir in the output of a cell. InputError for a wrong call, or where it cannot be served."""
    words = shlex.split(line)
    if len(words) not in (1, 2) or not all(word.isdecimal() for word in words[1:]):
        raise InputError("Not a call of %memory", line or "nothing", USAGE)
    height = int(words[1]) if words[1:] else HEIGHT
    port = server_port(words[0])
    if "google.colab" in sys.modules:
        sys.modules["google.colab"].output.serve_kernel_port_as_iframe(port, height=height)
        return
    from IPython.display import HTML, display

    proxied = json.dumps(find_spec("jupyter_server_proxy") is not None)
    display(HTML(FRAME.format(height=height, port=port, proxied=proxied)))


_servers: dict[str, tuple[subprocess.Popen[str], int]] = {}  # by logdir; and the port of each


def server_port(logdir: str) -> int:
    """Return the port of a server of a logdir, started where there is none. InputError where it does not start."""
    if logdir in _servers and _servers[logdir][0].poll() is None:
        return _servers[logdir][1]
    command = [sys.executable, "-m", "tb_memplugin.cli", "serve", "--logdir", logdir, "--port", "0", "--in-notebook"]
    # The server ends when its standard input is closed, so it never outlives this process.
    pipe = subprocess.PIPE
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    assert server.stdout is not None
    said: list[str] = []
    for text in server.stdout:
        if found := LISTENS.search(text):
            _servers[logdir] = server, int(found[1])
            atexit.register(server.terminate)
            return int(found[1])
        said.append(text.strip())
    with server:  # which closes its pipes
        server.wait()
    raise InputError("The page could not be served", logdir, " ".join(said) or f"exit code {server.returncode}")


class CellProgram(NamedTuple):
    """A program that a cell compiled, and the bytes that it needs on a device."""

    name: str
    bytes: int
    executable: Any


class Before:
    """The programs and arrays of JAX before a cell. Arrays are not kept alive."""

    def __init__(self) -> None:
        self._programs = _executables()
        self._arrays = [weakref.ref(array) for array in _arrays()]

    def difference(self) -> str:
        """Return what was compiled since, and what stays live of it, as HTML."""
        if "jax" not in sys.modules:
            return document([Markup("<p>JAX is not imported, so nothing was compiled.</p>")])
        return document([self._compiled(), self._live()])

    def _compiled(self) -> Markup:
        from tb_memplugin.capture.programs import main_memory
        from tb_memplugin.questions.explain.explain_html import explanation

        known = set(map(id, self._programs))
        new = [each for each in _executables() if id(each) not in known]
        programs = sorted(map(_program, new), key=lambda program: -program.bytes)
        if not programs:
            return Markup("<p><b>Nothing was compiled.</b></p>")
        rows = ((bytes_text(each.bytes), each.name) for each in programs[:MAX_ROWS])
        heading = Markup("<p><b>{} compiled; the largest, {}, needs {}</b></p>").format(
            counted(len(programs), "program"), programs[0].name, bytes_text(programs[0].bytes)
        )
        listed = folded("Programs", table(["needs", "program"], rows)) if len(programs) > 1 else Markup("")
        try:
            largest = explanation(main_memory(_compiled(programs[0].executable)))
        except (ValueError, InputError):  # a backend that keeps no buffer assignment
            return heading + listed
        return heading + listed + largest

    def _live(self) -> Markup:
        known = {id(array) for kept in self._arrays if (array := kept()) is not None}
        sizes, counts = Counter[str](), Counter[str]()
        for array in _arrays():
            if id(array) not in known:
                line = _line(array)
                sizes[line] += sum(shard.data.nbytes for shard in array.addressable_shards)
                counts[line] += 1
        if not sizes:
            return Markup("<p><b>No new array stays live.</b></p>")
        heading = Markup("<p><b>{} in {} stay live</b></p>").format(
            bytes_text(sizes.total()), counted(counts.total(), "new array")
        )
        rows = ((bytes_text(size), f"{counts[line]:,}", line) for line, size in sizes.most_common(MAX_ROWS))
        return heading + folded("By the line that made them", table(["bytes", "arrays", "line"], rows), open_=True)


def _executables() -> list[Any]:
    """Return the loaded programs of JAX's backends that are in use; none before JAX is imported."""
    if (jax := sys.modules.get("jax")) is None:
        return []
    clients = {id(device.client): device.client for device in jax.devices()}
    return [executable for client in clients.values() for executable in client.live_executables()]


def _arrays() -> list[Any]:
    return sys.modules["jax"].live_arrays() if "jax" in sys.modules else []


def _program(executable: Any) -> CellProgram:
    stats = executable.get_compiled_memory_stats()
    needs = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    return CellProgram(executable.hlo_modules()[0].name, needs - stats.alias_size_in_bytes, executable)


def _compiled(executable: Any) -> Any:
    """Return a loaded program with the interface of jax.stages.Compiled that capture.report uses."""
    analyze = executable.get_compiled_memory_stats
    return SimpleNamespace(runtime_executable=lambda: executable, memory_analysis=analyze)


def _line(array: Any) -> str:
    """Return the line that made an array: its text where it is in a cell, else its file and number."""
    from tb_memplugin.capture.allocator_events import creating_frame, creating_line

    found = creating_frame(array)
    text = linecache.getline(*found).strip() if found and "ipykernel" in found[0] else ""
    return text or creating_line(array) or "unknown"


def _recording_html(recording: Any) -> str:
    from tb_memplugin.questions.explain.explain_html import explanation

    return document([explanation(recording)])
