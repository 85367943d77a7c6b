"""The tables of all tools and of an agent's questions in Markdown, and their places in the pages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.results.figures import Figures, load
from benchmarks.timing import Cost
from benchmarks.works import CPP, HERE, RS, WORKS

REPOSITORY = Path(__file__).parent.parent.parent
BEGIN, END = "<!-- figures: {} -->", "<!-- end -->"
HEADING = """\
| work | tool | first view | whole process | memory | tb_memplugin |
|---|---|---|---|---|---|"""
SHORT_HEADING = """\
| work | {} | {} | tb_memplugin | compared with the fastest other |
|---|---|---|---|---|"""


def full(figures: Figures, heading: bool = True) -> str:
    """Return one row per work and tool."""
    lines = [HEADING] if heading else []
    for key, (_, tools) in figures.items():
        for number, (name, costs) in enumerate(tools.items()):
            work = WORKS[key].name if not number else ""
            ratio = "" if name == HERE else _compared(times_as_fast(tools[HERE], costs))
            seconds = f"{_spread([cost.answer for cost in costs])} | {_seconds(median(cost.whole for cost in costs))}"
            lines.append(f"| {work} | {name} | {seconds} | {_memory(costs)} | {ratio} |")
    return "\n".join(lines)


def short(figures: Figures, versions: dict[str, str]) -> str:
    """Return one row per work that another tool does as well, with medians."""
    lines = [SHORT_HEADING.format(f"XProf {versions['xprof']}", f"xprof-rs {versions['xprof-rs']}")]
    for key, (_, tools) in figures.items():
        rivals = {name: costs for name, costs in tools.items() if name != HERE}
        if RS not in rivals:
            continue
        ratio = min(times_as_fast(tools[HERE], costs) for costs in rivals.values())
        cells = " | ".join(_cell(tools[name]) for name in (CPP, RS, HERE))
        lines.append(f"| {WORKS[key].name} | {cells} | {_compared(ratio)} |")
    return "\n".join(lines)


def _compared(ratio: float) -> str:
    """Return a ratio of speeds in words that are true on both sides of 1: 3 is faster, and 0.17 is not."""
    return f"{ratio:.2g} times as fast" if ratio >= 1 else f"takes {1 / ratio:.2g} times as long"


def times_as_fast(ours: list[Cost], theirs: list[Cost]) -> float:
    """Return the median over rounds that both ran in."""
    return median(b.answer / a.answer for a, b in zip(ours, theirs, strict=False))


def write_pages() -> None:
    """Put the tables into the pages that have a place for them."""
    for page, name, table in tables():
        page.write_text(replaced(page.read_text(), name, table))


def tables() -> list[tuple[Path, str, str]]:
    """Return the pages with the name and the text of each table."""
    figures, measured_on = load("rivals")
    return [
        (REPOSITORY / "benchmarks/README.md", "all", full(figures)),
        (REPOSITORY / "benchmarks/README.md", "questions", questions()),
        (REPOSITORY / "README.md", "short", short(figures, measured_on["versions"])),
    ]


def replaced(text: str, name: str, table: str) -> str:
    """Return the text with the table between its marks. Raises ValueError where it has no such marks."""
    begin = BEGIN.format(name)
    found, count = re.subn(f"{re.escape(begin)}.*?{END}", lambda _: f"{begin}\n{table}\n{END}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{count} places for {begin}")
    return found


def _cell(costs: list[Cost]) -> str:
    return f"{_seconds(median(cost.answer for cost in costs))}, {_memory(costs)}"


def _spread(seconds: list[float]) -> str:
    if len(seconds) == 1:
        return _seconds(seconds[0])
    return f"{_seconds(median(seconds))} [{min(seconds):.2f}, {max(seconds):.2f}]"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def _memory(costs: list[Cost]) -> str:
    megabytes = max(cost.memory for cost in costs) / 1e6
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"


QUESTIONS = Path(__file__).parent / "questions.json"
AskedRow = tuple[str, int, int, bool]  # the question, calls, bytes, and whether the answer is right


def write_questions(rows: Sequence[AskedRow]) -> None:
    """Keep the figures, and put the table into the page."""
    named = [dict(zip(("question", "calls", "bytes", "right"), row, strict=True)) for row in rows]
    QUESTIONS.write_text(json.dumps(named, indent=1) + "\n")
    write_pages()


def questions() -> str:
    """Return one row per question, and the largest figures."""
    rows = json.loads(QUESTIONS.read_text())
    lines = ["| question | answer | calls | bytes |", "|---|---|---|---|"]
    lines += [
        f"| {row['question']} | {'right' if row['right'] else 'wrong'} | {row['calls']} | {row['bytes']:,} |"
        for row in rows
    ]
    most = f"at most {max(row['calls'] for row in rows)}", f"at most {max(row['bytes'] for row in rows):,}"
    return "\n".join(
        [*lines, f"| {len(rows)} questions | {sum(row['right'] for row in rows)} right | {' | '.join(most)} |"]
    )
