"""The options and the output of `--json`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tb_memplugin.commands.streams import close_quietly, show
from tb_memplugin.commands.terminal import JSON

if TYPE_CHECKING:
    from tb_memplugin.views.answers.asked import Asked
    from tb_memplugin.views.shared.json_types import ProblemJson

ALL = "all"
TOP = 5  # as views/answers/asked.py: TOP; commands import what they need when they run


def json_options(parser: argparse._ActionsContainer) -> None:
    """Add --json and --top."""
    parser.add_argument("--json", action="store_true", help=JSON)
    top_option(parser)


def top_option(parser: argparse._ActionsContainer) -> None:
    """Add --top alone."""
    parser.add_argument(
        "--top", metavar="N", type=top_of, default=TOP, help="items of each list with --json, or all (default: 5)"
    )


def top_of(text: str) -> int | None:
    """Return a number of items from 1 up, or None for `all`."""
    if text == ALL:
        return None
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 up nor {ALL}")
    return number


def asked(arguments: argparse.Namespace, path: str) -> Asked:
    """Return the question of a command about a path."""
    from tb_memplugin.views.answers.asked import Asked

    return Asked(path, arguments.top)


def print_failure(error: Exception) -> None:
    """Print an error as JSON, if standard output can be written to."""
    from tb_memplugin.views.answers.errors import error_answer

    try:
        print_answer(error_answer(error))
        sys.stdout.flush()
    except (OSError, ValueError):
        close_quietly(sys.stdout)


def print_wrong_call(message: str, command: str) -> None:
    """Print a wrong call of a command as JSON."""
    from tb_memplugin.views.answers.errors import failed

    print_answer(failed("usage", message, command, f"see `{command} --help`"))


def print_written(
    file: str, rows: int | None, recordings: Sequence[str], problems: Sequence[ProblemJson], question: Asked
) -> None:
    """Print the answer of a command that wrote a file: its rows (None: a report), and ids of what it contains."""
    from tb_memplugin.views.answers.asked import SCHEMA_VERSION
    from tb_memplugin.views.answers.bounded import bounded
    from tb_memplugin.views.answers.files import ExportAnswerJson

    answer: ExportAnswerJson = {
        "schema_version": SCHEMA_VERSION,
        "file": {"path": file, "bytes": os.path.getsize(file), "rows": rows},
        "recordings": list(recordings),
        "problems": list(problems),
        "next": [],
    }
    print_answer(bounded(answer, question.top))


def print_answer(answer: Mapping[str, object]) -> None:
    """Print an answer, indented on a terminal."""
    lines = sys.stdout.isatty()
    show(json.dumps(answer, indent=2 if lines else None, separators=None if lines else (",", ":"), allow_nan=False))
