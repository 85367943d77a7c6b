"""Options that several commands have, each declared once."""

from __future__ import annotations

import argparse

from tb_memplugin.model.kinds import COMPILE_SECONDS
from tb_memplugin.questions.asking.arguments import RECORDING
from tb_memplugin.questions.asking.asked import TOP
from tb_memplugin.sizes import parse_size

PATH = "logdir, run folder, or file; - reads the text of an error from standard input"
JSON = "print JSON"
PATTERN = "use only recordings whose id matches this regular expression (RE2), such as 'jit_train_step|HBM'"
MARKDOWN = "print Markdown, such as for a pull request"
TABLES = (".csv", ".csv.gz", ".json", ".json.gz", ".parquet")
LOGDIR = "folder with profiles, or a remote URL such as gs://bucket/run"
REPORT = ".html"
ALL = "all"

Parser = argparse._ActionsContainer  # a parser, or a group of its options


def path_option(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)


def recording_options(parser: Parser) -> None:
    """Add the path, and the option that chooses one recording of it."""
    path_option(parser)
    RECORDING.add_to(parser, "ID")


def pattern_option(parser: Parser) -> None:
    parser.add_argument("--recording", metavar="REGEX", help=PATTERN)


def json_options(parser: Parser) -> None:
    """Add --json and --top."""
    parser.add_argument("--json", action="store_true", help=JSON)
    top_option(parser)


def top_option(parser: Parser) -> None:
    """Add --top alone."""
    parser.add_argument(
        "--top",
        metavar="N",
        type=top_of,
        default=argparse.SUPPRESS,
        help=f"items of each list with --json (default: {ALL}), and of lists of buffers (default: {TOP})",
    )


def top_of(text: str) -> int | None:
    """Return a number of items from 1 up, or None for `all`."""
    if text == ALL:
        return None
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 up nor {ALL}")
    return number


def output_options(parser: Parser, content: str, suffixes: tuple[str, ...], required: bool) -> None:
    """Add the file to write, whose suffix selects the format, and --force."""
    parser.add_argument("--to", metavar="FILE", required=required, help=f"{content}: {', '.join(suffixes)}")
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")


def repeated_option(parser: Parser, name: str, metavar: str, help: str, dest: str | None = None) -> None:
    """Add an option that may be given several times; its values are a list."""
    parser.add_argument(name, metavar=metavar, action="append", default=[], help=help, dest=dest)


def server_options(parser: Parser, port: int) -> None:
    """Add the port of a server, the names that it answers to, and the folders of source files that it reads."""
    parser.add_argument(
        "--port", type=int, default=port, help="port to listen on; 0 picks a free one (default: %(default)s)"
    )
    names = "also answer to this name, such as a proxy's; .example.com includes the names below it; may be repeated"
    repeated_option(parser, "--allowed-host", "NAME", names)
    sources = "show lines of the source files below this folder beside stack frames, as for files in the logdir"
    repeated_option(parser, "--source-root", "DIR", f"{sources}; may be repeated")


def target_options(parser: Parser) -> None:
    """Add the options about what to compile a step for, and its knobs."""
    targets = "v5e:4x4, h100:8, cpu:8; a chip without a size, such as v5e, tries slices from the smallest up"
    repeated_option(parser, "--on", "TARGET", targets)
    repeated_option(parser, "--set", "KNOB=VALUE", "a value for a knob of the function", dest="fixed")


def limit_options(parser: Parser) -> None:
    """Add the options about what compiles may take."""
    parser.add_argument("--jobs", type=int, help="compiles at a time (default: half of the cores)")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=COMPILE_SECONDS,
        help=f"for each compile (default: {COMPILE_SECONDS:g})",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=parse_size,
        help="resident memory that a compile may take on this machine (default: an equal share for each job)",
    )
    parser.add_argument("--no-cache", action="store_true", help="compile again what is in the cache")
