"""The `tb-memplugin` command line. tb_memplugin/commands has one file per command.

Commands import their dependencies when they run, so that each starts quickly.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NoReturn

from tb_memplugin import __version__
from tb_memplugin.commands import check, compare, explain, export, fit, hook, serve, summary, xprof
from tb_memplugin.commands.terminal import printable
from tb_memplugin.errors import InputError

COMMANDS: tuple[ModuleType, ...] = (serve, xprof, summary, explain, compare, check, fit, export, hook)

DESCRIPTION = """\
Find out where the memory of a TPU or GPU program went, and how to use less.

Reads JAX profiles, compiled programs, device memory profiles, PyTorch
snapshots, and the text of out-of-memory errors."""

EPILOG = """\
examples:
  tb-memplugin serve --logdir /tmp/xprof          show the page in a browser
  tb-memplugin summary /tmp/xprof                 list the recordings
  tb-memplugin explain memory1.prof               break down the peak
  tb-memplugin explain - < error.txt              explain an out-of-memory error
  tb-memplugin check /tmp/xprof --max-peak 70GiB  enforce a memory budget in CI

Run `tb-memplugin COMMAND --help` for the options of a command. Exit codes:
0 success, 1 memory budget exceeded, 2 wrong input or call."""

_KEEP_LINES = argparse.RawDescriptionHelpFormatter  # help texts are wrapped by hand


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0: success. 1: a memory budget is exceeded. 2: the input or the call is wrong; one line on stderr says how.
    """
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if rest and not arguments.accepts_unknown:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    arguments.rest = rest
    command: Callable[[argparse.Namespace], int] = arguments.command
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for terminals that are not UTF-8
    try:
        status = command(arguments)
        sys.stdout.flush()
        return status
    except InputError as error:
        print(f"tb-memplugin: {printable(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) closed the pipe. Redirect stdout, or Python reports the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)}: see `{self.prog} --help`\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tb-memplugin", description=DESCRIPTION, epilog=EPILOG, formatter_class=_KEEP_LINES)
    parser.add_argument(
        "--version", action="version", version=f"tb-memplugin {__version__}", help="show the version and exit"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in COMMANDS:
        description = (module.__doc__ or "").strip()
        summary = description.partition("\n")[0].rstrip(".")
        name = module.__name__.rpartition(".")[2]
        command = commands.add_parser(
            name, help=f"{summary[0].lower()}{summary[1:]}", description=description, formatter_class=_KEEP_LINES
        )
        command.set_defaults(command=module.run, accepts_unknown=False)
        module.options(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
