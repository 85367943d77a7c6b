"""Write the memory of programs to a file, for `tb-memplugin check --baseline`.

The file is JSON for a repository: peak, reserved memory and roles of each program, its arguments, and its largest
arrays at the peak, under names that stay the same between compiles. It contains no times, hosts or folders.

examples:
  tb-memplugin baseline /tmp/xprof --write memory.json
  tb-memplugin check /tmp/xprof --baseline memory.json --tolerance 2%
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tb_memplugin.commands.json_output import asked, print_answer
from tb_memplugin.commands.streams import show
from tb_memplugin.commands.terminal import PATH, PATTERN, listing_of, pattern_of, print_problems, printable
from tb_memplugin.errors import InputError
from tb_memplugin.sizes import bytes_text, counted

if TYPE_CHECKING:
    from tb_memplugin.model.memory_facts import MemoryFacts

TOLERANCE = "2%"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument(
        "--write", metavar="FILE", help="the file, which is replaced if it is a baseline (default: print it)"
    )
    parser.add_argument("--recording", metavar="REGEX", help=PATTERN)


def check_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a check against a baseline."""
    group = parser.add_argument_group("a baseline, in place of --max-peak")
    group.add_argument("--baseline", metavar="FILE", help="a file that `tb-memplugin baseline` has written")
    group.add_argument(
        "--tolerance",
        metavar="LIMIT",
        default=TOLERANCE,
        help="how much peak and reserved memory may grow: 2%% or 100MiB (default: %(default)s)",
    )
    group.add_argument("--markdown", action="store_true", help="print Markdown, such as for a pull request")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.commands.output_file import atomic_file, check_output
    from tb_memplugin.views.shared.baseline_check import baseline_facts
    from tb_memplugin.views.shared.baseline_file import text_of

    if arguments.write is not None:
        check_output(arguments.write, arguments.path, _is_replaceable(arguments.write))
    pattern = pattern_of(arguments.recording)
    listing = listing_of(arguments.path, pattern.search if arguments.recording else None)
    found, problems = baseline_facts([r for r in listing.recordings if pattern.search(r.id)])
    print_problems(problems)
    if not found:
        where, remedy = arguments.recording or arguments.path, "`tb-memplugin summary` lists the recordings"
        raise InputError("No recordings for a baseline", where, remedy)
    text = text_of([one.facts for one in found])
    if arguments.write is None:
        show(text.rstrip("\n"))
    else:
        with atomic_file(arguments.write) as stream:
            stream.write(text.encode())
        size = bytes_text(os.path.getsize(arguments.write))
        show(f"{printable(arguments.write)}: {size}, {counted(len(found), 'recording')}")
    return 2 if problems or listing.problems else 0


def _is_replaceable(file: str) -> bool:
    """Return whether a file is a baseline. Other files are not overwritten."""
    if not os.path.isfile(file):
        return False
    try:
        read_baseline(file)
    except InputError as error:
        raise InputError("The output file is no baseline", file, "choose another name") from error
    return True


def read_baseline(file: str) -> Sequence[MemoryFacts]:
    """Read a baseline's file. InputError where it cannot be read or is none."""
    from tb_memplugin.views.shared.baseline_file import MAX_FILE_BYTES, parse, write_command

    try:
        with open(file, "rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        remedy = f"write it with `{write_command(file)}`"
        raise InputError("Cannot read the baseline", file, f"{error.strerror or error}; {remedy}") from error
    if len(data) > MAX_FILE_BYTES:
        raise InputError("Not a baseline", file, f"it has more than {bytes_text(MAX_FILE_BYTES)}")
    return parse(data, file)


def check(arguments: argparse.Namespace) -> int:
    """Check recordings against a baseline: 0 within the tolerance, 1 above it, 2 where some cannot be checked."""
    from tb_memplugin.commands.compare import peak_limit
    from tb_memplugin.views.answers.baseline import baseline_answer
    from tb_memplugin.views.shared.baseline_check import baseline_check
    from tb_memplugin.views.shared.baseline_file import write_command
    from tb_memplugin.views.shared.json_types import problems_json
    from tb_memplugin.views.terminal.baseline_text import texts

    allowed, before = peak_limit(arguments.tolerance), read_baseline(arguments.baseline)
    pattern = pattern_of(arguments.recording)
    listing = listing_of(arguments.path, pattern.search if arguments.recording else None)
    chosen = [r for r in listing.recordings if pattern.search(r.id)]
    answer = baseline_check(arguments.baseline, before, chosen, arguments.tolerance, allowed)
    print_problems(answer["problems"])
    answer["problems"] = [*problems_json(listing.problems), *answer["problems"]]
    if not answer["checked"]:
        raise InputError(
            "No recording is in the baseline",
            arguments.recording or arguments.path,
            f"write the baseline again with `{write_command(arguments.baseline)}`",
        )
    if arguments.json:
        print_answer(baseline_answer(answer, asked(arguments, arguments.path)))
    else:
        show("\n".join(map(printable, texts(answer, arguments.markdown))))
    if any(checked["exceeded"] for checked in answer["checked"]):
        return 1
    # What cannot be read or is missing may be above the baseline.
    return 2 if answer["problems"] or answer["missing"] else 0
