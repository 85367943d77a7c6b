"""The `tb-memplugin` command line: commands/options declares the commands, and commands/NAME.py runs one.

Only the file of the command that runs is imported. All others would take a second.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from textwrap import dedent
from typing import TYPE_CHECKING, NoReturn

from tb_memplugin import __version__
from tb_memplugin.commands.options import budgets, recordings, tools
from tb_memplugin.commands.support.terminal import (
    close_quietly,
    complain,
    is_reader_gone,
    prepare,
    print_failure,
    print_wrong_call,
)
from tb_memplugin.errors import InputError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# The functions add the options of commands; their docstrings are the help.
COMMANDS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    options.__name__: options
    for options in (
        *(tools.serve, tools.xprof),
        *(recordings.summary, recordings.explain, recordings.buffers),
        *(recordings.times, recordings.advice, recordings.compare),
        *(budgets.check, budgets.baseline, budgets.fit, budgets.plan, budgets.fleet),
        *(recordings.export, tools.cache, tools.schema, tools.mcp, tools.skill, tools.hook),
    )
}

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
0 success, 1 memory budget exceeded, 2 wrong input or call, or a failure."""

OTHER_CODE = {"check", "fit", "plan", "xprof"}  # commands that may run code of users or of XProf
DEBUG = "show the traceback of a failure"


def console() -> int:
    """Run `main` in a process of its own. A small summary takes 0.3 s of processor time, and would take 60 ms more."""
    if _command(sys.argv[1:]) not in OTHER_CODE:
        # Once imported, numpy starts threads for linear algebra. Reading and analyzing need none: 20 ms on two cores.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    status = main()
    gc.freeze()  # the last collection would visit every object, though the process ends anyway: 40 ms
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0: success. 1: a memory budget is exceeded. 2: the input or the call is wrong, the output cannot be written, or the
    command failed; one line on stderr says how, and with --debug the traceback is above it.
    """
    prepare()
    try:
        arguments = _parse(argv)
    except SystemExit:  # after --help, or a wrong call
        if _flushed(0) != 0:
            return 2
        raise
    except InputError as error:  # of the value of an option
        return _failed(error, debug=False, as_json=_Parser.as_json)
    except OSError as error:
        return _failed(error, debug=False, as_json=False)
    return _flushed(_run(arguments))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    words = sys.argv[1:] if argv is None else argv
    first = _command(words)
    _Parser.as_json = "--json" in words
    parser = _parser((first,) if first in COMMANDS else ())
    command_line = None
    before = words[: words.index("--")] if "--" in words else words
    takes_script = first in ("fit", "plan") or any(word.partition("=")[0] == "--fit" for word in before)
    if len(before) < len(words) and takes_script:
        words, command_line = before, words[len(before) + 1 :]  # of a script
    arguments, rest = parser.parse_known_args(words)
    if rest and not arguments.accepts_unknown:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    arguments.rest, arguments.command_line = rest, command_line
    return arguments


def _command(words: Sequence[str]) -> str:
    """Return the word of a call that names the command."""
    return next((word for word in words if word != "--debug"), "")


def _run(arguments: argparse.Namespace) -> int:
    try:
        command = import_module(f"tb_memplugin.commands.{arguments.command}")
        return command.run(arguments) or 0  # a command that cannot exceed a budget returns nothing
    except KeyboardInterrupt:
        return 130
    except SystemExit as end:  # of a library, or of a signal: 1 would mean that a budget is exceeded
        if isinstance(end.code, str):
            complain(f"tb-memplugin: {end.code}")
        return end.code if isinstance(end.code, int) and end.code != 1 else 2 if end.code else 0
    except Exception as error:
        return _failed(error, arguments.debug, getattr(arguments, "json", False))


def _failed(error: Exception, debug: bool, as_json: bool) -> int:
    if isinstance(error, BrokenPipeError) and is_reader_gone(sys.stdout):
        close_quietly(sys.stdout)  # the reader (head, less) has seen enough
        return 0
    if debug:
        complain(*"".join(traceback.format_exception(error)).rstrip().split("\n"))
    if not (isinstance(error, OSError) and error.filename is None and _flushed(0)):
        if as_json:
            print_failure(error)
        complain(f"tb-memplugin: {_one_line(error)}")
    return 2


def _one_line(error: Exception) -> str:
    """Describe an error for users; only an InputError is meant for them."""
    if isinstance(error, InputError):
        return str(error)
    debug = "run the command again with --debug to see the traceback"
    if isinstance(error, MemoryError):
        return f"Not enough memory: end other programs, or use a larger machine; {debug}"
    text = " ".join(str(error).split())
    if isinstance(error, OSError):
        about = "Cannot read or write" if error.filename is None else "Cannot read or write a file"
        return f"{about}: {text or type(error).__name__}; {debug}"
    return f"Unexpected failure: {type(error).__name__}{': ' if text else ''}{text}; {debug}, and report it"


def _flushed(status: int) -> int:
    """Write what is left of the output. Return the status, or 2 where that fails, such as on a full disk."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        close_quietly(sys.stdout)
    except (OSError, ValueError) as error:
        close_quietly(sys.stdout)
        complain(f"tb-memplugin: Cannot write the output: {getattr(error, 'strerror', None) or error}")
        return 2
    return status


class _Parser(argparse.ArgumentParser):
    as_json = False  # whether the call has --json

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print --help or --version. argparse ignores that standard output cannot be written."""
        if file is None or file is sys.stderr:
            complain(*message.rstrip("\n").split("\n"))
        else:
            file.write(message)

    def error(self, message: str) -> NoReturn:
        if self.as_json:
            print_wrong_call(message, self.prog)
        self.exit(2, f"{self.prog}: {message}: see `{self.prog} --help`\n")


def _parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of these commands; without any, one that can only print help."""
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="tb-memplugin", description=DESCRIPTION, epilog=EPILOG, formatter_class=keep_lines)
    parser.add_argument(
        "--version", action="version", version=f"tb-memplugin {__version__}", help="show the version and exit"
    )
    parser.add_argument("--debug", action="store_true", help=DEBUG)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in names:
        first, rest = _help(name)
        description = f"{first}\n{dedent(rest)}".strip()
        command = commands.add_parser(name, description=description, formatter_class=keep_lines)
        command.set_defaults(command=name, accepts_unknown=False)
        COMMANDS[name](command)
        # Without a default, which would undo the option before the command.
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=DEBUG)
    if not names:
        for name in COMMANDS:
            commands.add_parser(name, help=about(name))
    return parser


def about(name: str) -> str:
    """Return the first line of a command's help, for the list of commands."""
    line = _help(name)[0].removesuffix(".")
    return f"{line[0].lower()}{line[1:]}"


def _help(name: str) -> tuple[str, str]:
    """Return the first line of a command's help, and the other lines, which Python before 3.13 leaves indented."""
    first, _, rest = (COMMANDS[name].__doc__ or "").partition("\n")
    return first, rest


if __name__ == "__main__":
    sys.exit(console())
