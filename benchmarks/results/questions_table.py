"""The table of an agent's questions, and its figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

FILE = Path(__file__).parent / "questions.json"
NAME = "questions"
AskedRow = tuple[str, int, int, bool]  # the question, calls, bytes, and whether the answer is right


def write(rows: Sequence[AskedRow]) -> None:
    """Keep the figures, and put the table into the page."""
    from benchmarks.results.table import write_pages

    named = [dict(zip(("question", "calls", "bytes", "right"), row, strict=True)) for row in rows]
    FILE.write_text(json.dumps(named, indent=1) + "\n")
    write_pages()


def table() -> str:
    """Return one row per question, and the largest figures."""
    rows = json.loads(FILE.read_text())
    lines = ["| question | answer | calls | bytes |", "|---|---|---|---|"]
    lines += [
        f"| {row['question']} | {'right' if row['right'] else 'wrong'} | {row['calls']} | {row['bytes']:,} |"
        for row in rows
    ]
    most = f"at most {max(row['calls'] for row in rows)}", f"at most {max(row['bytes'] for row in rows):,}"
    return "\n".join(
        [*lines, f"| {len(rows)} questions | {sum(row['right'] for row in rows)} right | {' | '.join(most)} |"]
    )
