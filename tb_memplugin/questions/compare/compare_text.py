"""A comparison as lines for a terminal, and as Markdown for a pull request."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.questions.compare.causes import Quote, cause_lines, quoted
from tb_memplugin.questions.compare.comparison import CHANGES, ComparedEntryJson, ComparedSideJson, ComparisonJson
from tb_memplugin.questions.compare.pairs import ExplainedComparison
from tb_memplugin.sizes import bytes_text, counted, signed_bytes

MAX_ENTRIES = 20
NUMERIC_COLUMNS = 3  # the first ones
CHANGE_LABELS = {
    "only_a": "only in A",
    "only_b": "only in B",
    "grown": "grown",
    "shrunk": "shrunk",
    "same": "unchanged",
}


def lines(found: ExplainedComparison) -> Iterator[str]:
    """Format a comparison for a terminal. The caller escapes control characters, which names may contain."""
    answer = found.comparison
    yield f"A: {_title(answer['a'])}"
    yield f"B: {_title(answer['b'])}"
    yield answer["headline"]
    yield from (f"- {text}" for text in _causes(found, quoted))
    yield ""
    yield from align([["A", "B", "change", f"by {answer['by']}"], *_steps(answer)], NUMERIC_COLUMNS)
    changed = _entries(answer)
    if changed:
        yield ""
        yield from align([["A", "B", "change", "", "shape", "site"], *changed[:MAX_ENTRIES]], NUMERIC_COLUMNS)
        if (more := len(changed) - MAX_ENTRIES) > 0:
            yield f"and {counted(more, 'more change')}; --json lists all"
    yield ""
    yield _count_sentence(answer)


def markdown(found: ExplainedComparison) -> Iterator[str]:
    """Format a comparison as Markdown. Names are set as code, so that they cannot contain other markup."""
    answer = found.comparison
    a, b = answer["a"], answer["b"]
    yield f"### Memory: {code(_title(b))} against {code(_title(a))}"
    yield ""
    yield answer["verdict"]
    yield ""
    if causes := list(_causes(found, code)):
        yield from (f"- {text}" for text in causes)
        yield ""
    *steps, total = _steps(answer)
    yield from _table(["A", "B", "change", f"by {answer['by']}"], [*steps, [*total[:3], ""]])
    changed = _entries(answer)
    if changed:
        yield ""
        count = counted(len(changed), "change")
        yield f"<details><summary>{f'The largest of {count}' if len(changed) > MAX_ENTRIES else count}</summary>"
        yield ""
        yield from _table(
            ["A", "B", "change", "", "shape", "site"], changed[:MAX_ENTRIES], plain_columns=NUMERIC_COLUMNS + 1
        )
        yield ""
        yield "</details>"
    yield ""
    yield _count_sentence(answer)


def _causes(found: ExplainedComparison, quote: Quote) -> Iterator[str]:
    answer = found.comparison
    return cause_lines(found.causes, answer["b"]["bytes"] - answer["a"]["bytes"], quote)


def _title(side: ComparedSideJson) -> str:
    recording = side["recording"]
    names = (recording["run"], recording["host"], recording["title"], recording["memory"])
    return f"{', '.join(name for name in names if name)}, {bytes_text(side['bytes'])}"


def _steps(answer: ComparisonJson) -> list[list[str]]:
    steps = [step for step in answer["steps"] if step["bytes_a"] or step["bytes_b"]]
    rows = [[*_figures(step), step["label"]] for step in steps]
    total = {"bytes_a": answer["a"]["bytes"], "bytes_b": answer["b"]["bytes"]}
    return [*rows, [*_figures(total), "total"]]


def _entries(answer: ComparisonJson) -> list[list[str]]:
    return [
        [*_figures(entry), CHANGE_LABELS[entry["change"]], _shape(entry), entry["site"]]
        for entry in answer["entries"]
        if entry["change"] != "same"
    ]


def _figures(line: Mapping[str, Any]) -> list[str]:
    a, b = line["bytes_a"], line["bytes_b"]
    return [bytes_text(a), bytes_text(b), signed_bytes(b - a)]


def _shape(entry: ComparedEntryJson) -> str:
    return f"{entry['shape']}, was {entry['shape_before']}" if entry["shape_before"] else entry["shape"] or "-"


def _count_sentence(answer: ComparisonJson) -> str:
    parts = [
        f"{change['entries']:,} {CHANGE_LABELS[kind]}"
        + (f" ({signed_bytes(change['bytes'])})" if change["bytes"] else "")
        for kind in CHANGES
        if (change := answer["changes"][kind])["entries"]
    ]
    return f"Allocation sites: {', '.join(parts)}." if parts else "Neither A nor B has live allocations."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], plain_columns: int = NUMERIC_COLUMNS) -> Iterator[str]:
    """Format a Markdown table; cells after the first `plain_columns` are set as code."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('---:' if i < NUMERIC_COLUMNS else '---' for i in range(len(head)))}|"
    for row in rows:
        cells = [code(cell) if cell and i >= plain_columns else cell for i, cell in enumerate(row)]
        yield f"| {' | '.join(cells)} |"


MAX_CODE = 200  # characters of a name in Markdown, whose readers see whole tables
KEPT_START = 60  # of a longer one; its end tells more


def code(name: str) -> str:
    """Set a name as Markdown code, which no backtick, pipe or line break in the name can end. Long names are cut."""
    if len(name) > MAX_CODE:
        name = f"{name[:KEPT_START]}\N{HORIZONTAL ELLIPSIS}{name[KEPT_START + 1 - MAX_CODE :]}"
    plain = re.sub(r"[\s`]", lambda found: "'" if found[0] == "`" else " ", name)
    return "`" + plain.replace("|", "\\|") + "`"
