"""Limits of what a recording contains."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caveat:
    """Something that is missing from the file or had to be reconstructed. `bytes`: how much it affects, if known."""

    code: str
    text: str
    bytes: int | None = None
