"""What grew, what is new, what went: between two files, runs or moments; exit 1 where the peak grew too much."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tb_memplugin.commands.terminal import PATH, listing_of, printable
from tb_memplugin.errors import InputError
from tb_memplugin.sizes import bytes_text, parse_size

if TYPE_CHECKING:
    from tb_memplugin.views.page.compare import Pair

IDS_LISTED = 5
PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?%", re.ASCII)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=f"what there was: {PATH}")
    parser.add_argument("b", metavar="B", help="what there is now: as A")
    parser.add_argument("--recording", metavar="NAME", help="only what has this in its id: jit_train_step, HBM, cuda:0")
    parser.add_argument("--at-a", metavar="TIME", help="a moment of A other than its peak: 1.5s, 300ms, or '#120'")
    parser.add_argument("--at-b", metavar="TIME", help="the same of B")
    parser.add_argument("--by", choices=["role", "model", "source"], default="role", help="what the steps are")
    parser.add_argument(
        "--fail-if-peak-grows", metavar="LIMIT", help="exit 1 where B's peak is more than this above A's: 2%% or 100MiB"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for programs")
    form.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.terminal.compare_text import lines, markdown

    allowed = limit(arguments.fail_if_peak_grows) if arguments.fail_if_peak_grows else None
    answers = [_answer(pair, arguments) for pair in _pairs(arguments)]
    if arguments.json:
        print(json.dumps({"comparisons": answers}, indent=2, allow_nan=False))
    else:
        told = ((markdown if arguments.markdown else lines)(answer) for answer in answers)
        print("\n\n".join("\n".join(map(printable, text)) for text in told))
    return _judged(answers, allowed, arguments.fail_if_peak_grows) if allowed else 0


def limit(text: str) -> Callable[[int], int]:
    """The largest peak that is allowed after one of so many bytes. InputError where it is neither percent nor bytes."""
    if percent := PERCENT.fullmatch(text.strip()):
        factor = 1 + float(percent[1]) / 100
        return lambda before: int(before * factor)
    more = parse_size(text)
    return lambda before: before + more


def _pairs(arguments: argparse.Namespace) -> list[Pair]:
    from tb_memplugin.views.page.compare import pairs

    sides = []
    for path in (arguments.a, arguments.b):
        recordings = listing_of(path).recordings
        wanted = [r for r in recordings if (arguments.recording or "") in r.id]
        if not wanted:
            what = "No such recording" if recordings else "Nothing to compare"
            raise InputError(what, arguments.recording or path, f"`tb-memplugin summary {path}` lists what there is")
        sides.append(wanted)
    found = pairs(*sides)
    if not found:
        ids = "; ".join(", ".join(r.id for r in side[:IDS_LISTED]) for side in sides)
        raise InputError("Nothing is in both", f"{arguments.a} and {arguments.b}", f"name one with --recording: {ids}")
    for path, side, number in ((arguments.a, sides[0], 0), (arguments.b, sides[1], 1)):
        paired = {id(pair[number]) for pair in found}
        for alone in (r.id for r in side if id(r) not in paired):
            print(f"tb-memplugin: only in {printable(path)}: {printable(alone)}", file=sys.stderr)
    return found


def _answer(pair: Pair, arguments: argparse.Namespace) -> dict[str, Any]:
    from tb_memplugin.views.page.compare import CompareBy, compared
    from tb_memplugin.views.terminal.selectors import position_of

    moments = zip(pair, (arguments.at_a, arguments.at_b), strict=True)
    at_a, at_b = (position_of(recording, at) if at else None for recording, at in moments)
    return compared(*pair, at_a, at_b, CompareBy(arguments.by))


def _judged(answers: Sequence[dict[str, Any]], allowed: Callable[[int], int], text: str) -> int:
    """1 where a peak grew more than it may, and a line on standard error for each."""
    sides = [(answer["a"]["recording"], answer["b"]["recording"]) for answer in answers]
    broken = [(a["peak_bytes"], b) for a, b in sides if b["peak_bytes"] > allowed(a["peak_bytes"])]
    for before, b in broken:
        grew = f"{bytes_text(b['peak_bytes'])} after {bytes_text(before)}"
        print(f"tb-memplugin: {printable(b['id'])}: the peak grew by more than {text}: {grew}", file=sys.stderr)
    return 1 if broken else 0
