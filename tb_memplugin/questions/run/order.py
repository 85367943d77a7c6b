"""The order of a run's recordings, by the share of the limit that each uses, and the one that the page opens at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tb_memplugin.analysis.isolate import each
from tb_memplugin.analysis.usage.headroom import Headroom, headroom
from tb_memplugin.model.recording import Recording

SMALL_SHARE = 0.01  # of the memory that needs the most bytes
CLEAR_RATIO = 1.25  # of the largest share of a limit to the next one


@dataclass(frozen=True)
class Fitted:
    """A recording with its headroom."""

    recording: Recording
    room: Headroom


Entry = TypeVar("Entry", bound=Fitted)


def used_share(room: Headroom) -> float | None:
    """Return the share of the limit that is used; None if unknown."""
    return room.needed / room.capacity if room.capacity and room.left is not None else None


def ordered(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the recordings that matter, and the small ones: those below 1 % of the largest that fit.

    Failures and programs that do not fit come first, then main memories, each by the used share of the limit.
    Compilers fill on-chip memory with copies of what is in main memory, so little room there is no warning.
    """
    floor = SMALL_SHARE * max((entry.room.needed for entry in entries), default=0)
    found = sorted(entries, key=_order)
    small = [entry for entry in found if entry.room.needed < floor and not _fails(entry)]
    names = {entry.recording.id for entry in small}
    return [entry for entry in found if entry.recording.id not in names], small


def _order(entry: Fitted) -> tuple[bool, bool, bool, float, int, str]:
    share = used_share(entry.room)
    rank = -entry.room.needed, entry.recording.id
    return (not _fails(entry), not _is_main(entry.recording), share is None, -(share or 0), *rank)


def _fails(entry: Fitted) -> bool:
    left = entry.room.left
    return entry.recording.out_of_memory is not None or (left is not None and left < 0)


def _is_main(recording: Recording) -> bool:
    """Return whether a memory is that of devices: allocators have pools in host memory, too."""
    return recording.is_main_memory and "host" not in recording.memory.lower()


def opening(recordings: Sequence[Recording]) -> str | None:
    """Return the id of the recording that the page opens at; None where no recording clearly matters most."""
    fitted, _ = each(recordings, lambda recording: Fitted(recording.outline, headroom(recording.outline)))
    found = [entry for entry in ordered(fitted)[0] if _is_main(entry.recording)]
    failing = [entry for entry in found if _fails(entry)]
    # A program that does not fit has the buffers, which its error may lack.
    errors = [entry for entry in failing if entry.recording.out_of_memory is not None]
    if errors and len(errors) == len(failing):
        return errors[0].recording.id
    first, second = [*([entry for entry in failing if entry not in errors] or found), None, None][:2]
    if first is None or (second is not None and not _is_clear(first.room, second.room)):
        return None
    return first.recording.id


def _is_clear(first: Headroom, second: Headroom) -> bool:
    share, next_share = used_share(first), used_share(second)
    if share is None:
        return False
    if next_share is None:
        return first.needed > CLEAR_RATIO * second.needed
    return share > CLEAR_RATIO * next_share
