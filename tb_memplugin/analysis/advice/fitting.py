"""The smallest set of changes with which a program fits its memory, replayed together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import NamedTuple

from tb_memplugin.analysis.advice.compiled import Edits
from tb_memplugin.analysis.advice.model import Advice, Cost, Effort, Evidence, Saving, after_recomputation, memory_limit
from tb_memplugin.analysis.replay.together import together
from tb_memplugin.analysis.replay.what_if import Change, peak_after
from tb_memplugin.analysis.usage.headroom import headroom
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording

# Replays of sets of several pieces. Few programs have more than 7 pieces, whose 120 sets are all tried; of more, the
# sets of those with the largest savings are.
MAX_REPLAYS = 128
PieceNumbers = tuple[int, ...]
NOTHING_COMPILED: Mapping[Edits, Saving] = {}


class FittingSet(NamedTuple):
    """Changes to make together, by their numbers, the bytes that must fit with them, and whether these fit."""

    pieces: PieceNumbers
    after_bytes: int
    fits: bool
    evidence: Evidence


def fitting_set(
    recording: Recording, pieces: Sequence[Advice], compiled: Mapping[Edits, Saving] = NOTHING_COMPILED
) -> FittingSet | None:
    """Return the smallest set with which a recording fits, the cheapest of several; else the one that saves most.

    None if it fits, or without a known limit. `compiled`: what changes save together, where a compile has shown it.
    """
    room = headroom(recording)
    if room.left is None or room.left >= 0:
        return None
    costs, efforts = list(Cost), list(Effort)

    def price(numbers: PieceNumbers) -> tuple[float, int, int]:
        chosen = [pieces[number] for number in numbers]
        lost = round(sum(one.lost_time for one in chosen), 2)
        return lost, sum(costs.index(one.cost) for one in chosen), sum(efforts.index(one.effort) for one in chosen)

    best: tuple[PieceNumbers, Saving] | None = None
    for size in range(1, len(pieces) + 1):
        saved = {numbers: saving_together(recording, pieces, numbers, compiled) for numbers in _sets(pieces, size)}
        if enough := [numbers for numbers, found in saved.items() if room.left + found.room >= 0]:
            chosen = min(enough, key=lambda numbers: (price(numbers), -saved[numbers].at_least))
            fitting = room.needed + room.left  # the compiler repeats operations until the program fits
            after = min(room.needed - saved[chosen].at_least, fitting)
            return FittingSet(chosen, after, True, saved[chosen].evidence)
        best = max(([best] if best else []) + [*saved.items()], key=lambda found: found[1].room, default=None)
    return FittingSet(best[0], room.needed - best[1].room, False, best[1].evidence) if best else None


def _sets(pieces: Sequence[Advice], size: int) -> Iterator[PieceNumbers]:
    """Yield sets of so many pieces, those with the largest savings first; of several, all have a replay."""
    able = [number for number, one in enumerate(pieces) if one.saving.of == "peak" or one.saving.is_shown]
    if size > 1:
        able = [number for number in able if pieces[number].saving.replay is not None]
    return islice(combinations(able, size), MAX_REPLAYS // size)


def saving_together(
    recording: Recording,
    pieces: Sequence[Advice],
    numbers: PieceNumbers,
    compiled: Mapping[Edits, Saving] = NOTHING_COMPILED,
) -> Saving:
    """Return by how much these pieces lower the peak together: no more than the sum of what each saves by itself."""
    chosen = [pieces[number] for number in numbers]
    if len(chosen) == 1:
        return chosen[0].saving
    edits = frozenset(edit for one in chosen for edit in one.edits)
    if edits in compiled and all(one.edits for one in chosen):
        return compiled[edits]
    kinds, savings = [one.kind for one in chosen], [one.saving for one in chosen]
    before, floor = peak(recording).bytes, max(one.floor for one in savings)

    def saved(changes: Sequence[Change | None]) -> int:
        change = together(recording, [one for one in changes if one is not None], kinds)
        return before - max(peak_after(recording, change).bytes, floor)

    room = min(saved([one.repeating or one.replay for one in savings]), sum(one.room for one in savings))
    found = Saving(before, room, room, room)
    if all(one.repeating is None for one in savings):
        return after_recomputation(recording, found, kinds)
    without = saved([one.replay for one in savings])
    return replace(found, at_least=min(room, max(without, before - memory_limit(recording))), if_repeated=room)
