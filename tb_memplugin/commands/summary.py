"""One line per recording: peak, reserved, capacity, caveats."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tb_memplugin.commands.terminal import PATH, listing_of, printable
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.terminal.text_table import aligned

if TYPE_CHECKING:
    from tb_memplugin.catalog import Listing


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.shared.summary import summary

    listing = listing_of(arguments.path)
    summaries = [summary(recording) for recording in listing.recordings]
    if arguments.json:
        print(json.dumps({"recordings": summaries}, indent=2, allow_nan=False))
    elif summaries:
        print("\n".join([*table(summaries), *capacities(listing), *silences(listing)]))
    elif not listing.problems:
        print("No program with buffers and no allocator events in there.")
    return 2 if listing.problems and not summaries else 0


def capacities(listing: Listing) -> list[str]:
    """Whose word the capacities are that the recordings themselves do not tell, each once."""
    told = [found for found in listing.recordings if found.capacity and found.capacity_source]
    said = dict.fromkeys(f"Capacity of {r.memory}, {bytes_text(r.capacity)}: {r.capacity_source}." for r in told)
    return ["", *map(printable, said)] if said else []


def silences(listing: Listing) -> list[str]:
    """Why hosts told nothing over time, each reason once."""
    reasons = dict.fromkeys(f"No memory over time ({r.code}): {r.text} {r.remedy}" for r in listing.silent.values())
    return ["", *map(printable, reasons)] if reasons else []


COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "peak": lambda row: bytes_text(row["peak_bytes"]),
    "reserved": lambda row: bytes_text(row["reserved_bytes"]),
    "reported": lambda row: bytes_text(row["reported_peak_bytes"]),
    "capacity": lambda row: bytes_text(row["capacity_bytes"]),
    "allocations": lambda row: f"{row['allocations']:,}",
    "memory": lambda row: printable(row["memory"]),
    "recording": lambda row: printable(row["title"]),
    "run": lambda row: printable(row["run"]) or "-",
    "host": lambda row: printable(row["host"]) or "-",
    "caveats": lambda row: ", ".join(printable(caveat["code"]) for caveat in row["caveats"]) or "-",
}
NUMBERS = 5  # the first columns, set flush right


def table(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of text: a heading, one line per recording, and what the caveats among them mean."""
    lines = [list(COLUMNS), *([cell(row) for cell in COLUMNS.values()] for row in summaries)]
    texts = aligned(lines, NUMBERS)
    meanings = {caveat["code"]: caveat["text"] for row in summaries for caveat in row["caveats"]}
    notes = [f"{printable(code)}: {printable(text)}" for code, text in meanings.items()]
    return [*texts, *([""] if notes else []), *notes]
