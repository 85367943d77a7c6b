"""Check that every recording fits a memory budget, such as in CI.

A program must fit with the memory that it reserves, which compilers compare with their limit; any other recording with
its peak. Exit code 0 means that all of them fit, 1 that at least one does not.

example:
  tb-memplugin check /tmp/xprof --max-peak 70GiB --recording jit_train_step
"""

from __future__ import annotations

import argparse
import json

from tb_memplugin.commands.terminal import JSON, PATH, PATTERN, listing_of, pattern_of, printable
from tb_memplugin.errors import InputError
from tb_memplugin.sizes import parse_size


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument(
        "--max-peak",
        metavar="SIZE",
        required=True,
        help="the budget, such as 70GiB (1024**3), 70GB (1000**3), or a number of bytes",
    )
    parser.add_argument("--recording", metavar="REGEX", help=PATTERN)
    parser.add_argument("--json", action="store_true", help=JSON)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.shared.budget import budget, budget_lines

    limit = parse_size(arguments.max_peak)
    pattern = pattern_of(arguments.recording)
    listing = listing_of(arguments.path, pattern.search if arguments.recording else None)
    answer = budget(listing.recordings, limit, pattern)
    if not answer["checked"]:
        raise InputError(
            "No recordings to check",
            arguments.recording or arguments.path,
            "`tb-memplugin summary` lists the recordings",
        )
    text = [json.dumps(answer, indent=2, allow_nan=False)] if arguments.json else map(printable, budget_lines(answer))
    print("\n".join(text))
    if answer["broken"]:
        return 1
    # An unreadable file may contain a peak above the budget.
    return 2 if listing.problems else 0
