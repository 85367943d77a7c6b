"""Helpers that several commands share: reading a path, compiling a pattern, printing safely."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tb_memplugin.commands.streams import printable as printable
from tb_memplugin.errors import FailureLog, InputError

if TYPE_CHECKING:
    from tb_memplugin.catalog import Listing
    from tb_memplugin.model.recording import Recording
    from tb_memplugin.regex import Regex
    from tb_memplugin.views.shared.json_types import ProblemJson
    from tb_memplugin.views.shared.selectors import Chooser

PATH = "logdir, run folder, or file; - reads the text of an error from standard input"
JSON = "print JSON"
PATTERN = "use only recordings whose id matches this regular expression (RE2), such as 'jit_train_step|HBM'"
STDIN = "standard input"


def listing_of(path: str, wanted: Callable[[str], object] | None = None) -> Listing:
    """Read all recordings of a path; print problems to standard error. InputError where there is nothing to read.

    Of a dump with very many programs only the largest are read, and those of which an id is `wanted`.
    """
    from tb_memplugin.catalog import listing_of_path, listing_of_stream
    from tb_memplugin.catalog.progress import Progress
    from tb_memplugin.catalog.stages import skipped_text
    from tb_memplugin.commands.progress import shown_on_terminal
    from tb_memplugin.views.shared.json_types import problems_json

    if path == "-":
        if sys.stdin is None:  # closed by the shell
            raise InputError("Nothing to read", STDIN, "pipe the text of an error into the command")
        return listing_of_stream(sys.stdin.buffer, STDIN)
    FailureLog.is_kept = False
    progress = Progress()
    with shown_on_terminal(progress):
        listing = listing_of_path(path, wanted, progress)
    print_problems(problems_json(listing.problems))
    if text := skipped_text(listing.stages):
        print(f"tb-memplugin: {printable(text)}", file=sys.stderr)
    return listing


def recording_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose one recording of a path."""
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument(
        "--recording",
        metavar="ID",
        help="id of a recording, or a unique part of it; `summary --json` lists ids "
        "(default: the recording with the largest peak)",
    )


def chosen_recording(arguments: argparse.Namespace, chooser: Chooser | None = None) -> tuple[Recording, Listing]:
    """Return the recording that is asked for, and what the path contains. InputError if none or several match.

    `chooser`: one of views/shared/selectors.py, by default `choose`.
    """
    from tb_memplugin.views.shared.selectors import choose, is_wanted

    wanted = arguments.recording
    listing = listing_of(arguments.path, wanted and (lambda recording_id: is_wanted(recording_id, wanted)))
    return (chooser or choose)(listing.recordings, wanted, arguments.path, listing.problems), listing


def print_problems(problems: Sequence[ProblemJson]) -> None:
    """Print a line to standard error for each file or recording that cannot be read or analyzed."""
    for problem in problems:
        print(f"tb-memplugin: {printable(problem['file'])}: {printable(problem['text'])}", file=sys.stderr)


def pattern_of(text: str | None) -> Regex:
    """Compile a pattern for recording ids; None matches every id. InputError for an invalid regular expression."""
    from tb_memplugin.regex import Regex

    return Regex(text or "", "--recording")
