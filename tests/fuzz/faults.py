"""Faults: inputs that ended in anything but an answer or an InputError, one for each place in the code."""

from __future__ import annotations

import traceback
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """An input, and the text that tells where it failed."""

    path: Path
    text: str


def place_of(error: BaseException) -> str:
    """Return the type of an error and the innermost function of the tool that it passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "tb_memplugin" in frame.filename]
    frames = [frame for frame in frames if "/tests/" not in frame.filename] or frames
    place = f"{frames[-1].filename}:{frames[-1].name}" if frames else ""
    text = f": {error}" if isinstance(error, AssertionError) and not place else ""
    return f"{type(error).__name__} {place}{text}"


def save(folder: Path, place: str, data: bytes, text: str) -> None:
    """Save a fault's input and text, unless a shorter input for the same place is there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / sha1(place.encode()).hexdigest()[:12]
    if path.exists() and path.stat().st_size <= len(data):
        return
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(f"{place}\n\n{text}", errors="replace")


def found_in(folder: Path) -> list[Fault]:
    """Return the faults of a folder."""
    texts = sorted(folder.glob("*.txt"))
    return [Fault(path.with_suffix(""), path.read_text(errors="replace")) for path in texts]
