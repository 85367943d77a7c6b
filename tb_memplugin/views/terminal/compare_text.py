"""A comparison for a terminal, and in Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.page.compare import CHANGES, signed
from tb_memplugin.views.terminal.text_table import aligned

LISTED = 20
NUMBERS = 3  # the first columns are figures
WORDS = {"only_a": "only in A", "only_b": "only in B", "grown": "grown", "shrunk": "shrunk", "same": "unchanged"}


def lines(answer: dict[str, Any]) -> Iterator[str]:
    """For people. Names are as the files have them: the caller keeps control characters off the terminal."""
    for side in ("a", "b"):
        yield f"{side.upper()}: {_title(answer[side])}"
    yield answer["headline"]
    yield ""
    yield from aligned([["A", "B", "change", f"by {answer['by']}"], *_steps(answer)], NUMBERS)
    changed = _entries(answer)
    if changed:
        yield ""
        yield from aligned([["A", "B", "change", "", "shape", "site"], *changed[:LISTED]], NUMBERS)
        yield from _more(len(changed))
    yield ""
    yield _counted(answer)


def markdown(answer: dict[str, Any]) -> Iterator[str]:
    """Names are code, and can be nothing else."""
    a, b = answer["a"], answer["b"]
    yield f"### Memory: {code(_title(b))} against {code(_title(a))}"
    yield ""
    yield answer["verdict"]
    yield ""
    *steps, total = _steps(answer)
    yield from _table(["A", "B", "change", f"by {answer['by']}"], [*steps, [*total[:3], ""]])
    changed = _entries(answer)
    if changed:
        yield ""
        count = f"{len(changed):,} {'change' if len(changed) == 1 else 'changes'}"
        yield f"<details><summary>{f'The largest of {count}' if len(changed) > LISTED else count}</summary>"
        yield ""
        yield from _table(["A", "B", "change", "", "shape", "site"], changed[:LISTED], words=1)
        yield ""
        yield "</details>"
    yield ""
    yield _counted(answer)


def _title(side: dict[str, Any]) -> str:
    recording = side["recording"]
    names = (recording["run"], recording["host"], recording["title"], recording["memory"])
    return f"{', '.join(name for name in names if name)}, {bytes_text(side['bytes'])}"


def _steps(answer: dict[str, Any]) -> list[list[str]]:
    steps = [step for step in answer["steps"] if step["bytes_a"] or step["bytes_b"]]
    rows = [[*_figures(step), step["label"]] for step in steps]
    total = {"bytes_a": answer["a"]["bytes"], "bytes_b": answer["b"]["bytes"]}
    return [*rows, [*_figures(total), "total"]]


def _entries(answer: dict[str, Any]) -> list[list[str]]:
    return [
        [*_figures(entry), WORDS[entry["change"]], _shape(entry), entry["site"]]
        for entry in answer["entries"]
        if entry["change"] != "same"
    ]


def _figures(found: dict[str, Any]) -> list[str]:
    a, b = found["bytes_a"], found["bytes_b"]
    return [bytes_text(a), bytes_text(b), signed(b - a)]


def _shape(entry: dict[str, Any]) -> str:
    return f"{entry['shape']}, was {entry['shape_before']}" if entry["shape_before"] else entry["shape"] or "-"


def _counted(answer: dict[str, Any]) -> str:
    parts = [
        f"{found['entries']:,} {WORDS[kind]}" + (f" ({signed(found['bytes'])})" if found["bytes"] else "")
        for kind in CHANGES
        if (found := answer["changes"][kind])["entries"]
    ]
    return f"Allocation sites: {', '.join(parts)}." if parts else "Nothing is live in either."


def _more(count: int) -> Iterator[str]:
    if count > LISTED:
        yield f"and {count - LISTED:,} more changes: --json lists them"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 0) -> Iterator[str]:
    """Figures, so many columns of our own words, and then names."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('---:' if i < NUMBERS else '---' for i in range(len(head)))}|"
    for row in rows:
        cells = [code(cell) if cell and i >= NUMBERS + words else cell for i, cell in enumerate(row)]
        yield f"| {' | '.join(cells)} |"


def code(name: str) -> str:
    """A name as code: no backtick, pipe or line break of it can end that."""
    plain = re.sub(r"[\s`]", lambda found: "'" if found[0] == "`" else " ", name)
    return "`" + plain.replace("|", "\\|") + "`"
