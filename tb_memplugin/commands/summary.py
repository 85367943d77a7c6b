"""The command `summary`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from tb_memplugin.commands.support.output import asked, listing_of, print_problems
from tb_memplugin.commands.support.terminal import print_answer, show
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.questions.asking.json_types import problems_json
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.questions.recording.summary import summaries, summary_answer
from tb_memplugin.sizes import bytes_text


def run(arguments: argparse.Namespace) -> int:
    listing = listing_of(arguments.path)
    found, failed = summaries(listing.recordings)
    problems = [*problems_json(listing.problems), *failed]
    print_problems(failed)
    if arguments.json:
        print_answer(summary_answer(found, problems, asked(arguments, arguments.path), listing.left_out))
    elif found:
        # Capacities that the recordings do not contain themselves; hosts without memory over time; dumps left out.
        derived = [each for each in listing.recordings if each.capacity and each.capacity_source]
        notes = (
            dict.fromkeys(f"Capacity of {r.memory}, {bytes_text(r.capacity)}: {r.capacity_source}." for r in derived),
            dict.fromkeys(f"No memory over time ({r.code}): {r.text} {r.remedy}" for r in listing.no_events.values()),
            [dump.text for dump in listing.left_out],
        )
        show(*table(found), *chain(*(["", *texts] for texts in notes if texts)))
    elif not problems:
        show("No recordings found: no compiled program with buffers, and no allocator events.")
    return 2 if problems and not found else 0


COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "peak": lambda row: bytes_text(row["peak_bytes"]),
    "reserved": lambda row: bytes_text(row["reserved_bytes"]),
    "reported": lambda row: bytes_text(row["reported_peak_bytes"]),
    "capacity": lambda row: bytes_text(row["capacity_bytes"]),
    "allocations": lambda row: f"{row['allocations']:,}",
    "memory": lambda row: str(row["memory"]),
    "recording": lambda row: str(row["title"]),
    "run": lambda row: row["run"] or "-",
    "host": lambda row: row["host"] or "-",
    "caveats": lambda row: ", ".join(caveat["code"] for caveat in row["caveats"]) or "-",
}
NUMERIC_COLUMNS = 5  # the first ones, right-aligned


def fold_hosts(summaries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return one row for equal programs of several hosts, the first of each, with `x8` in place of the host."""
    folded: dict[str, list[Mapping[str, Any]]] = {}
    for row in summaries:
        key = json.dumps({**row, "id": "", "host": ""}) if row["kind"] == RecordingKind.PROGRAM else row["id"]
        folded.setdefault(key, []).append(row)
    return [{**same[0], "host": f"x{len(same)} hosts"} if len(same) > 1 else same[0] for same in folded.values()]


def table(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines of text: a heading, a line per recording or for equal hosts, and an explanation of each caveat."""
    lines = [list(COLUMNS), *([cell(row) for cell in COLUMNS.values()] for row in fold_hosts(summaries))]
    texts = align(lines, NUMERIC_COLUMNS)
    meanings = {caveat["code"]: caveat["text"] for row in summaries for caveat in row["caveats"]}
    notes = [f"{code}: {text}" for code, text in meanings.items()]
    return [*texts, *([""] if notes else []), *notes]
