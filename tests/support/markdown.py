"""Parts of the Markdown pages that tests check: headings, links, tables and code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support.servers import REPOSITORY

PAGES = sorted(path for folder in ("", "docs", "frontend", "benchmarks") for path in (REPOSITORY / folder).glob("*.md"))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")


class Section(NamedTuple):
    """A heading and the text below it, up to the next heading of any level."""

    heading: str
    text: str

    @property
    def tables(self) -> list[list[list[str]]]:
        """Yield the cells of each table, without its heading and its rule."""
        found: list[list[list[str]]] = []
        previous = ""
        for line in self.text.splitlines():
            if line.startswith("|"):
                if not previous.startswith("|"):
                    found.append([])
                found[-1].append([cell.strip() for cell in line.strip("| ").split(" | ")])
            previous = line
        return [table[2:] for table in found]


def sections(page: Path) -> list[Section]:
    parts = re.split(r"(?m)^#+ +(.+)$", page.read_text())
    return [Section(heading, text) for heading, text in zip(parts[1::2], parts[2::2], strict=True)]


def section(page: Path, heading: str) -> Section:
    return next(found for found in sections(page) if found.heading == heading)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = (re.sub(r"[^\w\- ]", "", found.heading.replace("`", "").lower()) for found in sections(page))
    return {heading.replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    return LINK.findall(page.read_text())


def inline_code(page: Path) -> list[str]:
    """Return the texts between backticks, fenced blocks left out."""
    return CODE.findall(re.sub(r"(?ms)^```.*?^```", "", page.read_text()))


def code_lines(page: Path) -> Iterator[str]:
    """Yield the lines of indented and fenced code blocks."""
    fenced = False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line if fenced else line[4:]
