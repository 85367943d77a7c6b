"""The smallest set of changes with which a program fits its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tb_memplugin.analysis.advice.model import Advice
from tb_memplugin.analysis.usage.headroom import headroom
from tb_memplugin.model.recording import Recording


class FittingSet(NamedTuple):
    """Changes to make together, by their numbers, and the bytes that must fit with them."""

    pieces: tuple[int, ...]
    after: int
    fits: bool


def fits_after(recording: Recording, saved: int) -> bool | None:
    """Return whether a recording fits its memory if it needs so many bytes less; None if the memory is unknown."""
    left = headroom(recording).left
    return None if left is None else left + saved >= 0


def fitting_set(recording: Recording, pieces: Sequence[Advice]) -> FittingSet | None:
    """Return the smallest set with which a recording fits, else the best one; None if it fits, or without a limit."""
    room = headroom(recording)
    if room.left is None or room.left >= 0 or not pieces:
        return None
    saved = pieces[0].saving_bytes
    return FittingSet((0,), room.needed - saved, room.left + saved >= 0)
