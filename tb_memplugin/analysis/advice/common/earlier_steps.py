"""What an allocator still holds of earlier steps when the peak comes: leaks, and what is freed a step too late."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, Kind, by_size, name_of, saving
from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_steps import Sites, leaks
from tb_memplugin.analysis.ownership.frames import frame_text, nearest, of_frameworks
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.sites import sites_of
from tb_memplugin.analysis.replay.what_if import lives, relived
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

LATE = (Verdict.LEAK, Verdict.KEPT)
LEAKING = "drop what keeps them: a list that grows, a global, a loss kept as an array (float(loss) keeps a number)"
LEAKING_TORCH = (
    "drop what keeps them: a list that grows, a global, a loss kept with its graph (loss.item() keeps a number)"
)
KEPT = "donate the old state to the step that replaces it (donate_argnums of jax.jit)"
KEPT_TORCH = "write over the old tensors in place, or drop them (del) before the new ones are made"


def advise(recording: Recording) -> Iterator[Advice]:
    """One piece for each line of the user's that allocates so, of whatever sizes and by whatever operations."""
    found = leaks(recording) if recording.clock is not None else None
    if found is None or found.sites is None:
        return
    for (verdict, source), sites in _places(recording, found.sites).items():
        rows = _rows_of(recording, found.sites, np.array(sites))
        if piece := _of_place(recording, source, rows, found.steps.position, verdict == Verdict.LEAK):
            yield piece


def _places(recording: Recording, sites: Sites) -> dict[tuple[Verdict, str], list[int]]:
    """The sites of each line: the user's innermost frame, else any that has a file, else the allocation's name.

    Gradients that wait for the next step are told of in gradients.py.
    """
    stacks, found = recording.stacks, dict[tuple[Verdict, str], list[int]]()
    own = np.append(nearest(stacks, ~of_frameworks(stacks)), np.int32(-1))
    late = np.isin(sites.verdict, LATE) & (roles(recording)[sites.row] != Role.GRADIENT)
    for number in np.flatnonzero(late).tolist():
        row = int(sites.row[number])
        leaf = int(recording.allocations.stack[row])
        frames = (f"{file}:{line}" for _, file, line in stacks.frames(leaf) if file)
        source = frame_text(stacks, int(own[leaf])) if own[leaf] >= 0 else next(frames, name_of(recording, row))
        found.setdefault((Verdict(int(sites.verdict[number])), source), []).append(number)
    return found


def _rows_of(recording: Recording, sites: Sites, which: I64) -> I64:
    table = recording.allocations
    found = np.zeros(len(table), dtype=bool)
    for sized in (True, False):
        if (mine := which[sites.sized[which] == sized]).size:
            site, _ = sites_of(table, np.arange(len(table)), sized=sized)
            found |= np.isin(site, site[sites.row[mine]])
    return np.flatnonzero(found & (table.charge > 0))


def _of_place(recording: Recording, source: str, rows: I64, ends: I64, leaking: bool) -> Advice | None:
    """As if each of its allocations were freed by the end of its step, in all steps."""
    at, own = peak(recording).position, lives(recording).take(rows)
    step_ends = np.append(ends + 1, recording.length)[np.searchsorted(ends, own.start)]
    freed = np.where(own.start < 0, 0, np.maximum(step_ends, own.start + 1))
    saved = saving(recording, relived(recording, own.row, own._replace(end=np.minimum(own.end, freed))))
    old = own.row[(freed <= at) & (own.end > at)]
    if saved is None or not len(old):
        return None
    size = int(recording.allocations.charge[old].sum())
    torch = recording.kind.startswith("torch")
    change = (LEAKING_TORCH if torch else LEAKING) if leaking else (KEPT_TORCH if torch else KEPT)
    count = f"{len(old)} allocations" if len(old) > 1 else "an allocation"
    return Advice(
        kind=Kind.LATE_FREE,
        title=f"Memory of earlier steps is never freed: {source}"
        if leaking
        else f"Memory of the step before is freed late: {source}",
        sentence=f"At the peak {count} of earlier steps, from {source}, still hold{'' if len(old) > 1 else 's'} "
        f"{bytes_text(size)}. Were all freed when their step ends, the peak would be {bytes_text(saved.bytes)} lower.",
        change=change,
        rows=by_size(recording, old),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )
