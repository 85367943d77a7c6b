"""Compare the memory of two files, runs or moments.

Shows how much the peak grew, and which allocation sites grew, shrank, are new
or are gone.

examples:
  tb-memplugin compare before.pickle after.pickle
  tb-memplugin compare run1/ run2/ --recording jit_train_step --by model
  tb-memplugin compare main/ branch/ --fail-if-peak-grows 2% --markdown

Exit code 1 means that a peak grew by more than --fail-if-peak-grows allows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tb_memplugin.commands.json_output import asked, print_answer, top_option
from tb_memplugin.commands.streams import show
from tb_memplugin.commands.terminal import JSON, PATH, listing_of, print_problems, printable
from tb_memplugin.sizes import bytes_text

if TYPE_CHECKING:
    from tb_memplugin.views.answers.compared_pairs import ExplainedComparison
    from tb_memplugin.views.page.compare import Pair
    from tb_memplugin.views.shared.tolerance import Tolerance


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=f"the old state: {PATH}")
    parser.add_argument("b", metavar="B", help="the new state, likewise")
    parser.add_argument(
        "--recording",
        metavar="NAME",
        help="use only recordings whose id contains this text, such as jit_train_step, HBM or cuda:0",
    )
    parser.add_argument(
        "--at-a",
        metavar="TIME",
        help="use this moment of A instead of its peak: a time (1.5s, 300ms) or an event number ('#120')",
    )
    parser.add_argument("--at-b", metavar="TIME", help="use this moment of B instead of its peak")
    parser.add_argument(
        "--by",
        choices=["role", "model", "source"],
        default="role",
        help="how to group the changes (default: %(default)s)",
    )
    parser.add_argument(
        "--fail-if-peak-grows",
        metavar="LIMIT",
        help="exit with code 1 if the peak of B exceeds that of A by more than this: 2%% or 100MiB",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=JSON)
    top_option(parser)
    form.add_argument("--markdown", action="store_true", help="print Markdown, such as for a pull request")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.answers.compared_pairs import compared_pairs
    from tb_memplugin.views.shared.tolerance import parse_tolerance
    from tb_memplugin.views.terminal.compare_text import lines, markdown

    text = arguments.fail_if_peak_grows
    tolerance = parse_tolerance(text) if text else None
    answers, failed = compared_pairs(_pairs(arguments), arguments.at_a, arguments.at_b, arguments.by)
    print_problems(failed)
    if arguments.json:
        from tb_memplugin.views.answers.compare import compare_answer

        question = asked(arguments, arguments.a)
        print_answer(compare_answer(answers, failed, question, arguments.b, arguments.by))
    else:
        texts = ((markdown if arguments.markdown else lines)(answer) for answer in answers)
        show("\n\n".join("\n".join(map(printable, text)) for text in texts))
    grown = _check_growth(answers, tolerance) if tolerance else 0
    return grown or (2 if failed else 0)


def _pairs(arguments: argparse.Namespace) -> list[Pair]:
    from tb_memplugin.views.answers.compared_pairs import matched_pairs

    paths, wanted = (arguments.a, arguments.b), arguments.recording or ""
    sides = [listing_of(path) for path in paths]
    matched = matched_pairs(paths, sides, wanted)
    for number, (path, side) in enumerate(zip(paths, sides, strict=True)):
        paired = {id(pair[number]) for pair in matched}
        for unpaired in (r.id for r in side.recordings if wanted in r.id and id(r) not in paired):
            print(f"tb-memplugin: only in {printable(path)}: {printable(unpaired)}", file=sys.stderr)
    return matched


def _check_growth(answers: Sequence[ExplainedComparison], tolerance: Tolerance) -> int:
    """Return 1 where a peak grew by more than is allowed, and print a line per such peak to standard error."""
    sides = [(one.comparison["a"]["recording"], one.comparison["b"]["recording"]) for one in answers]
    exceeded = [(a["peak_bytes"], b) for a, b in sides if b["peak_bytes"] > tolerance.allowed(a["peak_bytes"])]
    for old_peak, b in exceeded:
        growth = f"from {bytes_text(old_peak)} to {bytes_text(b['peak_bytes'])}"
        text = f"{printable(b['id'])}: the peak grew by more than {tolerance.text}: {growth}"
        print(f"tb-memplugin: {text}", file=sys.stderr)
    return 1 if exceeded else 0
