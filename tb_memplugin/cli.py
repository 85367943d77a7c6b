"""The same answers in a terminal: `tb-memplugin serve | xprof | summary | explain | hook`.

Commands import what they need when they run, so that each starts as fast as it can.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tb_memplugin import __version__
from tb_memplugin.errors import InputError
from tb_memplugin.views.columns import aligned

if TYPE_CHECKING:
    from tb_memplugin.catalog import Listing

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """0: fine. 1: a budget is broken. 2: the input or the call is wrong; one line on stderr says how."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if rest and not arguments.passes_on:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    arguments.rest = rest
    command: Command = arguments.command
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # not every terminal is UTF-8
    try:
        status = command(arguments)
        sys.stdout.flush()
        return status
    except InputError as error:
        print(f"tb-memplugin: {printable(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)}: see `{self.prog} --help`\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tb-memplugin", description="Where did my accelerator's memory go, and what do I do about it?"
    )
    parser.add_argument("--version", action="version", version=f"tb-memplugin {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        added.set_defaults(command=command, passes_on=False)
        return added

    serve = add("serve", _serve, "the page, on its own")
    serve.add_argument("--logdir", required=True, help="folder with profiles, or a URL that fsspec reads")
    serve.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)"
    )
    serve.add_argument("--port", type=int, default=6007, help="port to listen on; 0 picks one (default: %(default)s)")
    serve.add_argument("--open", action="store_true", help="open the page in a browser")

    xprof = add("xprof", _xprof, "the page, in XProf: its server, with our Memory Viewer in place of its own")
    xprof.add_argument("--logdir", required=True, help="folder with profiles")
    xprof.add_argument("--port", type=int, default=8791, help="port of the page (default: %(default)s)")
    xprof.epilog = "Further arguments go to XProf's server, --grpc_port for one; `xprof --help` lists them."
    xprof.set_defaults(passes_on=True)

    summary = add("summary", _summary, "one line per recording: peak, reserved, capacity, caveats")
    summary.add_argument("path", metavar="PATH", help="a logdir, a run's folder, an .xplane.pb or an .hlo_proto.pb")
    summary.add_argument("--json", action="store_true", help="print JSON, for programs")

    explain = add("explain", _explain, "what is live at the peak, by site, role and shape, and what leaks")
    explain.add_argument("path", metavar="PATH", help="as for summary")
    explain.add_argument("--recording", metavar="ID", help="an id of `summary --json`, or a part that only one has")
    explain.add_argument("--at", metavar="TIME", help="a moment other than the peak: 1.5s, 300ms, or an event, '#120'")
    explain.add_argument("--json", action="store_true", help="print JSON, for programs")

    hook = add("hook", _hook, "make the plain `xprof` command of this environment show our Memory Viewer, or not")
    hook.add_argument("action", choices=["install", "status", "remove"])
    return parser


def _serve(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import standalone

    standalone.serve(arguments.logdir, arguments.host, arguments.port, arguments.open)
    return 0


def _xprof(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import xprof

    return xprof.serve(arguments.logdir, arguments.port, arguments.rest)


def _hook(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import hook

    print(getattr(hook, arguments.action)())
    return 0


def _summary(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.summary import summary

    listing = _listing(arguments.path)
    summaries = [summary(recording) for recording in listing.recordings]
    if arguments.json:
        print(json.dumps({"recordings": summaries}, indent=2, allow_nan=False))
    elif summaries:
        print("\n".join(table(summaries)))
    elif not listing.problems:
        print("No program with buffers and no allocator events in there.")
    return 2 if listing.problems and not summaries else 0


def _explain(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.explain import choose, explain, lines

    answer = explain(choose(_listing(arguments.path).recordings, arguments.recording, arguments.path), arguments.at)
    text = [json.dumps(answer, indent=2, allow_nan=False)] if arguments.json else map(printable, lines(answer))
    print("\n".join(text))
    return 0


def _listing(path: str) -> Listing:
    """Everything in there; what cannot be read is told on standard error."""
    from tb_memplugin.catalog import listing_of_path

    # The log is for servers; here every problem is printed as a line of its own.
    logging.getLogger("tb_memplugin").setLevel(logging.ERROR)
    listing = listing_of_path(path)
    for problem in listing.problems:
        print(f"tb-memplugin: {printable(problem.file)}: {printable(problem.text)}", file=sys.stderr)
    return listing


COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "peak": lambda row: size(row["peak_bytes"]),
    "reserved": lambda row: size(row["reserved_bytes"]),
    "reported": lambda row: size(row["reported_peak_bytes"]),
    "capacity": lambda row: size(row["capacity_bytes"]),
    "allocations": lambda row: f"{row['allocations']:,}",
    "memory": lambda row: printable(row["memory"]),
    "recording": lambda row: printable(row["title"]),
    "run": lambda row: printable(row["run"]) or "-",
    "host": lambda row: printable(row["host"]) or "-",
    "caveats": lambda row: ", ".join(printable(caveat["code"]) for caveat in row["caveats"]) or "-",
}
NUMBERS = 5  # the first columns, set flush right


def table(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of text: a heading, one line per recording, and what the caveats among them mean."""
    lines = [list(COLUMNS), *([cell(row) for cell in COLUMNS.values()] for row in summaries)]
    texts = aligned(lines, NUMBERS)
    meanings = {caveat["code"]: caveat["text"] for row in summaries for caveat in row["caveats"]}
    notes = [f"{printable(code)}: {printable(text)}" for code, text in meanings.items()]
    return [*texts, *([""] if notes else []), *notes]


def size(count: int | None) -> str:
    """Bytes as people read them: `71.2 GiB`, `512 B`, `-` where unknown."""
    if count is None:
        return "-"
    if abs(count) < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        value /= 1024
        # 1023.95 and more would show as 1024.0 of this unit.
        if abs(value) < 1023.95 or unit == "PiB":
            break
    return f"{value:,.1f} {unit}"


def printable(text: str) -> str:
    """Names come from files: a control character in one must not reach the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


if __name__ == "__main__":
    sys.exit(main())
