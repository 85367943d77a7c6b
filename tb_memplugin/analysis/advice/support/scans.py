"""Scans whose forward loop stacks values for a backward loop: advice to recompute them in each iteration."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import numpy as np

from tb_memplugin.analysis.advice.model import ONE_MORE_PASS, Advice, AdviceKind, Saving, Work, promise, sort_by_size
from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.source_lines import frame_text, user_frames
from tb_memplugin.analysis.program_times import MOVES
from tb_memplugin.analysis.replay.program_graph import ProgramGraph, body_graph, program_graph
from tb_memplugin.analysis.replay.scan_recompute import ScanRecomputation
from tb_memplugin.analysis.replay.scan_stacks import ScanStacks
from tb_memplugin.analysis.replay.schedule_graph import Loops, lower_peak, program_loops
from tb_memplugin.analysis.replay.what_if import Change, remove_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I32, I64, marked
from tb_memplugin.model.fit import RECOMPUTED
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted

MAX_SCANS = 64  # the largest ones are replayed
MAX_DEPTH = 16  # levels of nested loops
LEAST_SHARE = 1000  # stacks below 1/1000 of the peak are not replayed; a twentieth gives the stored programs the same
# A saving is a range if its bounds differ by this factor, a choice: with 1.1, 4 of the 74 stored programs get another
# answer, with 1.005 one, and the same promises are kept.
CLEARLY = 1.02
FILLS = "broadcast_in_dim"  # the last part of JAX's name of what fills a stack before the scan
MORE = 1.1  # of ten scans that were compiled with the change, one saved 1.10 times what the best order found saves
HOLDS = 0.7  # of six stored programs that were compiled again, the least saved 0.73 of what is expected


def advise(recording: Recording, passes: ProgramPasses) -> Iterator[Advice]:
    """Yield a piece for each scan in the source, which may run several times."""
    written: dict[tuple[str | int, int], list[ScanRecomputation]] = {}  # by line, else by loop, and by computation
    loops = program_loops(recording)
    for forward, backward in _loop_pairs(recording, passes, loops):
        parent = int(loops.parent[forward])
        if scan := _recomputation(recording, loops, forward, backward, parent):
            written.setdefault((_scan_line(recording, passes, scan) or scan.loops[0], parent), []).append(scan)
    advised = (_around_body(recording, passes, loops, parent, found) for (_, parent), found in written.items())
    pieces = [piece for piece in advised if piece is not None]
    # The change is to all scans: of several pieces, it would show none by itself.
    yield from (replace(piece, edits=(RECOMPUTED,)) if len(pieces) == 1 else piece for piece in pieces)


def _loop_pairs(recording: Recording, passes: ProgramPasses, loops: Loops) -> list[tuple[int, int]]:
    """Return the loops of forward passes, each with the backward loop that reads most of the bytes that it writes.

    The same computation runs both.
    """
    table = recording.allocations
    if not len(loops):
        return []
    forward, backward = (passes.within(which)[loops.position] for which in (Pass.FORWARD, Pass.BACKWARD))
    made = passes.made
    writer = np.where(made >= 0, loops.innermost[made], -1)
    writer = np.where((writer >= 0) & forward[writer], writer, -1)
    by_memory = np.full(len(table), -1, dtype=np.int32)
    by_memory[table.canonical[writer >= 0]] = writer[writer >= 0]
    row, position = passes.uses
    memory = table.canonical[row]
    source = by_memory[memory]
    reader = _beside(loops, loops.innermost[position], source)
    pair = (source >= 0) & (reader > source)
    pair &= backward[reader]
    key = np.unique(np.stack([source[pair], reader[pair], memory[pair]]), axis=1)
    pairs, of_pair = np.unique(key[:2], axis=1, return_inverse=True)
    size = np.bincount(of_pair.ravel(), table.size[key[2]], pairs.shape[1])
    chosen: list[tuple[int, int]] = []
    for one in np.argsort(-size, kind="stable")[:MAX_SCANS].tolist():
        first, second = pairs[:, one].tolist()
        if LEAST_SHARE * size[one] < peak(recording).bytes:
            break
        if all(first != other[0] and second != other[1] for other in chosen):
            chosen.append((first, second))
    return sorted(chosen)


def _beside(loops: Loops, loop: I32, other: I32) -> I32:
    """Return, for each loop, the loop around it that the computation of `other` runs; -1 if there is none."""
    parent = loops.parent
    for _ in range(MAX_DEPTH):
        inside = (loop >= 0) & (other >= 0) & (parent[loop] != parent[other])
        if not inside.any():
            break
        loop = np.where(inside, parent[loop], loop)
    return np.where((loop >= 0) & (parent[loop] == parent[other]), loop, -1).astype(np.int32)


def _graph(recording: Recording, loops: Loops, loop: int) -> ProgramGraph | None:
    """Return the graph of a loop's body, or of the entry computation for -1."""
    return program_graph(recording) if loop < 0 else body_graph(recording, int(loops.position[loop]))


def _recomputation(
    recording: Recording, loops: Loops, forward: int, backward: int, parent: int
) -> ScanRecomputation | None:
    around, first, second = (_graph(recording, loops, loop) for loop in (parent, forward, backward))
    if around is None or first is None or second is None:
        return None
    scan = ScanRecomputation(
        ScanStacks(around, first, second), (int(loops.position[forward]), int(loops.position[backward]))
    )
    return scan if len(scan.stacks.dropped.memory) and scan.backward_bytes is not None else None


def _around_body(
    recording: Recording, passes: ProgramPasses, loops: Loops, parent: int, found: list[ScanRecomputation]
) -> Advice | None:
    rows = np.concatenate([scan.stacks.dropped.memory for scan in found])
    saved = _saving(recording, loops, parent, found, remove_rows(recording, rows))
    if saved is None:
        return None
    size, place = int(recording.allocations.size[rows].sum()), _scan_line(recording, passes, found[0])
    counts = " and ".join(str(count) for count in sorted({scan.stacks.iterations for scan in found}))
    scan = f"a scan over {counts} iterations" if len(found) == 1 else f"{len(found):,} scans over {counts} iterations"
    stack = agree(len(found), "forward loop stacks", "forward loops stack")
    return Advice(
        kind=AdviceKind.REMATERIALIZATION,
        title=f"Rematerialize the body of {scan}",
        sentence=f"The scan's {stack} {counted(len(rows), 'tensor')} for the backward pass, {bytes_text(size)}"
        f"{f', in {place}' if place else ''}. Keeping only each iteration's inputs, and recomputing the rest, "
        f"{saved.effect}.{ONE_MORE_PASS}",
        change="jax.lax.scan(jax.checkpoint(body), ...)",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving=saved,
        work=_work(recording, passes, loops, found, rows),
    )


def _work(recording: Recording, passes: ProgramPasses, loops: Loops, found: list[ScanRecomputation], rows: I64) -> Work:
    """Return the bodies of the forward loops, which run once more, without what moves slices from and to stacks."""
    inside = np.zeros(recording.length, dtype=bool)
    for scan in found:
        begin, last = loops.first[loops.position == scan.loops[0]], scan.loops[0]
        inside[int(begin[0]) : last] = True
    row, position = passes.uses
    made = recording.allocations.start[rows]
    touches = marked(recording.length, np.r_[position[np.isin(row, rows)], made[made >= 0]])
    moves = passes.op_name.where(lambda name: name.rpartition("/")[2] in (*MOVES, FILLS))
    size = float(recording.allocations.size[rows].sum())
    return Work(np.flatnonzero(inside & ~moves), np.flatnonzero(moves & (touches | inside)), dropped=size)


def _saving(
    recording: Recording, loops: Loops, parent: int, found: list[ScanRecomputation], replay: Change
) -> Saving | None:
    """Return what the scans save, and at least and at most if the compiler finds no better order, or the best one."""
    before = found[0].parent.graph
    saved = []
    for shrinks, early in ((0.5, False), (0.0, False), (1.0, False), (1.0, True)):
        after = reduce(lambda graph, scan: scan.apply(graph, shrinks), found, before)
        order = lower_peak(after, after.own_order) if early else after.own_order
        change = after.peak(order) - before.peak(before.own_order)
        saved.append(-_outside(recording, loops, parent, change))
    exact = max(saved) <= CLEARLY * min(saved)
    most = min(int(MORE * saved[-1]), peak(recording).bytes)
    return promise(recording, saved[0], *(() if exact else (*saved[1:-1], most)), replay=replay, holds=HOLDS)


def _outside(recording: Recording, loops: Loops, loop: int, change: int) -> int:
    """Return the change of the program's peak if the body of a loop needs `change` bytes more."""
    while loop >= 0 and change:
        outer = _graph(recording, loops, int(loops.parent[loop]))
        if outer is None:
            return 0
        graph = outer.graph
        workspace = graph.workspace.copy()
        workspace[outer.node[loops.position[loop]]] += change
        changed = replace(graph, workspace=workspace)
        change = changed.peak(changed.own_order) - graph.peak(graph.own_order)
        loop = int(loops.parent[loop])
    return change


def _scan_line(recording: Recording, passes: ProgramPasses, scan: ScanRecomputation) -> str:
    """Return the user's line of the scan, empty if unknown."""
    leaf = int(passes.stack[scan.loops[0]])
    own = int(user_frames(recording)[leaf]) if leaf >= 0 else -1
    return frame_text(recording.stacks, own) if own >= 0 else ""
