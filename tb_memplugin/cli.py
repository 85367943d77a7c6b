"""`tb-memplugin COMMAND`: the same answers in a terminal. The commands are in tb_memplugin/commands, a file each.

Commands import what they need when they run, so that each starts as fast as it can.
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
from tb_memplugin.commands import check, compare, explain, export, hook, serve, summary, xprof
from tb_memplugin.commands.terminal import printable
from tb_memplugin.errors import InputError

COMMANDS: tuple[ModuleType, ...] = (serve, xprof, summary, explain, compare, check, export, hook)


def main(argv: Sequence[str] | None = None) -> int:
    """0: fine. 1: a budget is broken. 2: the input or the call is wrong; one line on stderr says how."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if rest and not arguments.passes_on:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    arguments.rest = rest
    command: Callable[[argparse.Namespace], int] = arguments.command
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
    for module in COMMANDS:
        text = (module.__doc__ or "").strip()
        name = module.__name__.rpartition(".")[2]
        added = commands.add_parser(name, help=f"{text[0].lower()}{text[1:].rstrip('.')}", description=text)
        added.set_defaults(command=module.run, passes_on=False)
        module.options(added)
    return parser


if __name__ == "__main__":
    sys.exit(main())
