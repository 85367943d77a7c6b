"""Ask the questions, and print a table of calls and bytes.

    python -m benchmarks.questions [--write]

`--write` keeps the figures in results/questions.json, and puts the table into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from benchmarks.questions.profiles import write_profiles
from benchmarks.questions.questions import QUESTIONS, Reader
from benchmarks.results.table import write_questions


class Asked(NamedTuple):
    """A question that was asked: what was found, what is known, and what it took."""

    text: str
    found: object
    known: object
    calls: int
    bytes: int


def ask_all(folder: Path) -> list[Asked]:
    """Write the profiles into a folder and ask all questions about them, in that folder."""
    profiles = write_profiles(folder)
    asked = []
    with chdir(folder):
        for question in QUESTIONS:
            reader = Reader()
            found = question.find(reader)
            asked.append(Asked(question.text, found, question.known(profiles), reader.calls, reader.bytes))
    return asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the figures, and write the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        asked = ask_all(Path(folder) / "profiles")
    for one in asked:
        print(f"{'right' if one.found == one.known else 'WRONG'}  {one.calls}  {one.bytes:>5}  {one.text}")
        if one.found != one.known:
            print(f"       {one.found!r}, not {one.known!r}")
    if options.write:
        write_questions([(one.text, one.calls, one.bytes, one.found == one.known) for one in asked])


if __name__ == "__main__":
    main()
