"""Several changes made together: what each leaves of a memory, and what each adds."""

from collections.abc import Sequence

import numpy as np

from tb_memplugin.analysis.replay.what_if import Change, charged_for_region, combine, new_memory
from tb_memplugin.model.arrays import F64, I32, I64, sum_over_time
from tb_memplugin.model.recording import Recording


def together(recording: Recording, changes: Sequence[Change], kinds: Sequence[str]) -> Change:
    """Return the change if these changes, each of a kind, are made together.

    Of the bytes of a memory at a position, each change leaves a share, and together they leave the product of their
    shares: what one removes, no other removes again, and half of a half is a fourth. Changes of one kind do not repeat
    each other: of them, the smallest share counts. What they add is added up, see `_new_memory`.
    """
    known = [change.take(change.memory >= 0) for change in changes]
    memory = np.unique(np.concatenate([change.memory for change in known]))
    table = recording.allocations
    charged = np.flatnonzero((table.charge > 0) & np.isin(table.canonical, memory))
    own = Change(table.start[charged], table.end[charged], table.charge[charged], table.canonical[charged])
    edges = np.unique(np.concatenate([key for change in (own, *known) for key in _keys(recording, memory, change)]))
    bytes_now, *differences = (_levels(recording, memory, edges, change) for change in (own, *known))
    left = bytes_now * _share_left(bytes_now, differences, kinds)
    added = np.sum(np.maximum(differences, 0), axis=0)
    width = recording.length + 1
    changed = Change(
        edges % width,
        np.append(edges[1:] % width, 0),
        np.rint(left).astype(np.int64) - bytes_now + added,
        memory[edges // width],
    )
    return combine(changed.take(changed.bytes != 0), _new_memory(recording, changes))


def _new_memory(recording: Recording, changes: Sequence[Change]) -> Change:
    """Return what the changes add that is no row's: mostly temporaries that lose the idle memory of results.

    A change that shrinks only results that another one shrinks as well evicts the same temporaries again: the larger
    need of both counts. Other needs add up.
    """
    shrunk = [_shrunk_results(recording, change) for change in changes]
    order = sorted(range(len(changes)), key=lambda number: -len(shrunk[number]))
    needs: list[tuple[frozenset[int], I64]] = []
    for number in order:
        part = changes[number].take(changes[number].memory < 0)
        need = sum_over_time(recording.length, part.start, part.end, part.bytes)
        for at, (results, other) in enumerate(needs):
            if shrunk[number] and shrunk[number] <= results:
                needs[at] = results, np.maximum(other, need)
                break
        else:
            needs.append((shrunk[number], need))
    total = np.sum(np.stack([need for _, need in needs]), axis=0)
    begin = np.flatnonzero(np.diff(total, prepend=0))
    return new_memory(begin, np.r_[begin[1:], recording.length][: len(begin)], total[begin])


def _shrunk_results(recording: Recording, change: Change) -> frozenset[int]:
    """Return the memories for the whole program that a change shrinks, other than those of arguments."""
    memory = np.unique(change.memory[(change.bytes < 0) & (change.memory >= 0)])
    lasts = charged_for_region(recording)[memory] & (recording.allocations.defined[memory] >= 0)
    return frozenset(memory[lasts].tolist())


def _share_left(bytes_now: I64, differences: Sequence[I64], kinds: Sequence[str]) -> F64:
    by_kind: dict[str, F64] = {}
    for difference, kind in zip(differences, kinds, strict=True):
        share = np.clip((bytes_now + difference) / np.maximum(bytes_now, 1), 0, 1)
        by_kind[kind] = np.minimum(by_kind.get(kind, np.ones(len(share))), share)
    return np.prod(list(by_kind.values()), axis=0)  # type: ignore[no-any-return]


def _keys(recording: Recording, memory: I32 | I64, change: Change) -> tuple[I64, I64]:
    """Return the begin and the end of each part of a change, ordered by memory and then by position."""
    first = np.searchsorted(memory, change.memory) * (recording.length + 1)
    begin, end = (np.clip(position, 0, recording.length) for position in (change.start, change.end))
    return first + begin, first + np.maximum(begin, end)


def _levels(recording: Recording, memory: I32 | I64, edges: I64, change: Change) -> I64:
    """Return the sum of a change's bytes from each edge to the next; those of a memory are 0 after its last edge."""
    begin, end = _keys(recording, memory, change)
    step = np.zeros(len(edges), dtype=np.int64)
    np.add.at(step, np.searchsorted(edges, begin), change.bytes)
    np.add.at(step, np.searchsorted(edges, end), -change.bytes)
    return np.cumsum(step)
