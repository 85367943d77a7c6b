"""Limits of what a recording contains."""

from __future__ import annotations

from typing import NamedTuple

from tb_memplugin.model.codes import CaveatCode


class Caveat(NamedTuple):
    """Something that is missing from the file or had to be reconstructed. `bytes`: how much it affects, if known."""

    code: CaveatCode
    text: str
    bytes: int | None = None
