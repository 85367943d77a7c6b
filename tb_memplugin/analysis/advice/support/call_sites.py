"""The line of the source that runs a layer: below it, all operations occur once for each layer."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.support.layer_code import called_functions, callers, leaves_below
from tb_memplugin.model.arrays import F64, I32, I64, Mask
from tb_memplugin.model.tables import Stacks

QUARTILES = (0.25, 0.75)  # compilers move some operations to the start or the end
MIN_SHARE = 0.05  # of what is kept by all layers, for those of one loop
MIN_LINES = 3  # that repeat; of fewer, the others may as well be an embedding or a head
ALMOST_ALL = 0.999  # of what is kept; a fusion may have the call stack of a line of another layer


class CallSite(NamedTuple):
    """Lines of one function in one call, each of which runs as often as the others."""

    frames: list[int]
    depth: int
    kept: float  # bytes that its operations keep for the backward pass


class Operations(NamedTuple):
    """The named operations of a forward pass, in order."""

    leaf: I32  # the innermost frame
    repeats: I64  # how many operations have the same name and stack
    kept: F64  # bytes kept for the backward pass
    reads_weight: Mask
    elements: I64  # of its largest result


class _Line(NamedTuple):
    """A line of a function: when most of its operations run, and whether any repeats or reads a weight."""

    begin: float
    end: float
    repeats: bool
    reads_weight: bool


def call_site(stacks: Stacks, operations: Operations, turns: int, often_later: I32) -> CallSite | None:
    """Return the innermost line that runs `turns` times and below which the most is kept, or lines of one loop.

    `often_later` are innermost frames of operations that occur often in the backward pass.
    """
    leaves, of_leaf = np.unique(operations.leaf, return_inverse=True)
    once = _runs_once(operations, of_leaf, turns) & ~np.isin(leaves, often_later)
    size = np.bincount(of_leaf, operations.kept, len(leaves))
    below: dict[int, float] = {}
    depth: dict[int, int] = {}
    runs_once, in_turns = _calls(stacks, operations, turns)
    for frame, is_single, bytes_kept in zip(leaves.tolist(), once.tolist(), size.tolist(), strict=True):
        chain = list(callers(stacks, frame))
        for steps, caller in enumerate(chain):
            depth[caller] = len(chain) - steps
            below[caller] = below.get(caller, 0.0) + bytes_kept
        # Where most lines of a function run in turns, one of them may be fused differently in the last turn.
        runs_once.update(set(chain) - in_turns if is_single else ())
    lines = [CallSite([frame], depth[frame], kept) for frame, kept in below.items() if frame not in runs_once]
    loops: dict[tuple[int, int, int], CallSite] = {}
    for (frame,), steps, bytes_kept in lines:
        where = (int(stacks.parent[frame]), int(stacks.function.codes[frame]), int(stacks.file.codes[frame]))
        before = loops.get(where, CallSite([], steps, 0.0))
        loops[where] = CallSite([*before.frames, frame], steps, before.kept + bytes_kept)
    largest = max((site.kept for site in loops.values()), default=0.0)
    best = [site for site in lines if site.kept >= ALMOST_ALL * largest] or list(loops.values())
    return max((s for s in best if s.kept >= ALMOST_ALL * largest > 0), key=lambda s: s.depth, default=None)


def one_after_another(stacks: Stacks, operations: Operations, site: CallSite) -> list[CallSite]:
    """Return the lines of a site that call layers one after another, in order; the site itself if lines take turns."""
    found: list[tuple[float, float, CallSite]] = []
    for frame in site.frames if len(site.frames) > 1 else ():
        leaves = leaves_below(stacks, operations.leaf, [frame])
        at = np.flatnonzero(np.isin(operations.leaf, leaves) & (operations.kept > 0))
        kept = float(operations.kept[at].sum())
        called = called_functions(stacks, leaves.astype(np.int32), [frame])
        if kept >= MIN_SHARE * site.kept and len(called) == 1 and called[0] != frame:
            begin, end = np.quantile(at, QUARTILES)
            found.append((float(begin), float(end), CallSite([frame], site.depth, kept)))
    found.sort(key=lambda line: line[0])
    apart = all(line[1] < other[0] for line, other in pairwise(found))
    most = 2 * sum(line[2].kept for line in found) > site.kept
    return [line[2] for line in found] if apart and most else [site]


def _calls(stacks: Stacks, operations: Operations, turns: int) -> tuple[set[int], set[int]]:
    """Return the lines that call a function once, and those that call one most of whose lines repeat.

    The lines of a function that is called once do not run in turns: two of its lines that
    repeat do so one after the other, as two loops do, or most of its lines do not repeat, and one of these reads a
    weight, as a model does that has an embedding, layers and a head.
    """
    # What is computed from weights alone is small, and may run at any time.
    large = 2 * operations.elements >= np.median(operations.elements[operations.repeats == turns])
    counts = np.flatnonzero(large & (operations.reads_weight | (operations.kept > 0)))
    order = counts[np.argsort(operations.leaf[counts], kind="stable")]
    leaves, begin = np.unique(operations.leaf[order], return_index=True)
    lines: dict[int, dict[tuple[int, int], list[I64]]] = {}  # by the frame that calls them
    for leaf, at in zip(leaves.tolist(), np.split(order, begin[1:]), strict=True):
        for frame in callers(stacks, leaf):
            line = int(stacks.function.codes[frame]), int(stacks.line[frame])
            lines.setdefault(int(stacks.parent[frame]), {}).setdefault(line, []).append(at)
    once, in_turns = set[int](), set[int]()
    for frame, called in lines.items():
        found = [_line(operations, at, turns) for at in called.values()]
        if frame >= 0 and len(called) > 1 and _run_in_sequence(found):
            once.update(callers(stacks, frame))
        elif (repeated := sum(line.repeats for line in found)) >= MIN_LINES and 2 * repeated > len(found):
            in_turns.add(frame)
    return once, in_turns


def _line(operations: Operations, parts: list[I64], turns: int) -> _Line:
    at = np.concatenate(parts)
    begin, end = np.quantile(at, QUARTILES)
    repeats = bool(operations.repeats[at].max() >= max(turns - 1, 2))
    return _Line(float(begin), float(end), repeats, bool(operations.reads_weight[at].any()))


def _run_in_sequence(lines: list[_Line]) -> bool:
    repeated = sorted(line for line in lines if line.repeats)
    once = [line for line in lines if not line.repeats and line.reads_weight]
    several = [line for line in repeated if line.begin < line.end]
    if any(line.end < other.begin for line, other in pairwise(several)):
        return True
    if not repeated or not once:
        return False
    before = min(once).end < repeated[0].begin  # an embedding; what comes after may be a part of the last layer
    return 2 * len(repeated) < len(lines) + before


def _runs_once(operations: Operations, of_leaf: I64, turns: int) -> Mask:
    """Mark the innermost frames whose operations are few, and come after all that repeat or read a weight before them.

    Few operations elsewhere are those of the first or the last turn, which the compiler fuses differently, or
    constants such as masks, which it computes once. So is a single operation at the end with a large result, such as
    the addition to the residual stream, which is fused with the next layer in the other turns.
    """
    often = np.zeros(int(of_leaf.max()) + 1, dtype=np.int64)
    np.maximum.at(often, of_leaf, operations.repeats)
    all_turns = np.flatnonzero(operations.repeats == turns)
    before, after = slice(None, all_turns[0]), slice(all_turns[-1] + 1, None)
    outside = np.zeros(len(often), dtype=bool)
    outside[of_leaf[before][operations.reads_weight[before]]] = True
    alone = np.bincount(of_leaf, minlength=len(often)) == 1
    fused = alone[of_leaf[after]]
    fused &= operations.elements[after] >= np.median(operations.elements[all_turns])
    outside[of_leaf[after][~fused]] = True
    outside[of_leaf[all_turns[0] : all_turns[-1] + 1]] = False
    return (often < max(turns - 1, 2)) & outside
