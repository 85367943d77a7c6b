"""What is live at the peak, by site, role and shape, and what leaks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tb_memplugin.commands.terminal import PATH, listing_of, printable

if TYPE_CHECKING:
    from tb_memplugin.model.recording import Recording


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument("--recording", metavar="ID", help="an id of `summary --json`, or a part that only one has")
    parser.add_argument("--at", metavar="TIME", help="a moment other than the peak: 1.5s, 300ms, or an event, '#120'")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.terminal.explain import explain
    from tb_memplugin.views.terminal.explain_text import lines
    from tb_memplugin.views.terminal.selectors import choose

    recordings = listing_of(arguments.path).recordings
    chosen = choose(recordings, arguments.recording, arguments.path)
    answer = explain(chosen, arguments.at, recordings)
    if arguments.json:
        print(json.dumps(answer, indent=2, allow_nan=False))
    else:
        print("\n".join(map(printable, [*lines(answer), *_over_time(chosen, recordings)])))
    return 0


def _over_time(chosen: Recording, recordings: Sequence[Recording]) -> Iterator[str]:
    """Where leaks would show, when what is explained is none over time."""
    other = next((r for r in recordings if r.axis == "TIME" and r.run == chosen.run), None)
    if chosen.axis == "PROGRAM_ORDER" and other is not None:
        yield ""
        yield f"Memory over time was recorded too, which tells leaks: --recording '{other.id}'"
