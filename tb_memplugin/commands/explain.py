"""What is live at the peak, by site, role and shape, and what leaks."""

from __future__ import annotations

import argparse
import json

from tb_memplugin.commands.terminal import PATH, listing_of, printable


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument("--recording", metavar="ID", help="an id of `summary --json`, or a part that only one has")
    parser.add_argument("--at", metavar="TIME", help="a moment other than the peak: 1.5s, 300ms, or an event, '#120'")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.asked import choose
    from tb_memplugin.views.explain import explain
    from tb_memplugin.views.explain_text import lines

    recordings = listing_of(arguments.path).recordings
    answer = explain(choose(recordings, arguments.recording, arguments.path), arguments.at, recordings)
    text = [json.dumps(answer, indent=2, allow_nan=False)] if arguments.json else map(printable, lines(answer))
    print("\n".join(text))
    return 0
