"""Exit with 1 where a peak is above a budget: for CI."""

from __future__ import annotations

import argparse
import json

from tb_memplugin.commands.terminal import PATH, listing_of, pattern_of, printable
from tb_memplugin.errors import InputError
from tb_memplugin.sizes import parse_size


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument("--max-peak", metavar="SIZE", required=True, help="the budget: 70GiB, 70GB, or bytes")
    parser.add_argument("--recording", metavar="REGEX", help="only recordings whose id this is found in")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.shared.budget import budget, verdict

    limit = parse_size(arguments.max_peak)
    listing = listing_of(arguments.path)
    answer = budget(listing.recordings, limit, pattern_of(arguments.recording))
    if not answer["checked"]:
        raise InputError("There is nothing to check", arguments.recording or arguments.path, "see tb-memplugin summary")
    text = [json.dumps(answer, indent=2, allow_nan=False)] if arguments.json else map(printable, verdict(answer))
    print("\n".join(text))
    if answer["broken"]:
        return 1
    # What could not be read may be what breaks the budget.
    return 2 if listing.problems else 0
