"""Memory that is held at the peak though nobody needs it then: read long before, or not before long after."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.arguments import Argument, arguments, jitted
from tb_memplugin.analysis.advice.passes import Bools, Passes, passes
from tb_memplugin.analysis.advice.piece import Advice, Kind, Saving, by_size, name_of, on_cpu, saving
from tb_memplugin.analysis.flow import row_of_value
from tb_memplugin.analysis.leaks import Sites, leaks
from tb_memplugin.analysis.replay import Change, join, lives, released, relived
from tb_memplugin.analysis.roles import roles
from tb_memplugin.analysis.sites import sites_of
from tb_memplugin.analysis.twins import twins
from tb_memplugin.analysis.usage import peak
from tb_memplugin.analysis.verdicts import Verdict
from tb_memplugin.recording import I64, Recording, Role
from tb_memplugin.sizes import bytes_text

LONG = 4  # a fourth of the program: what is read sooner is not worth moving
SMALL = 100  # below a hundredth of the largest array
KEPT = (Role.PARAMETER, Role.OPTIMIZER_STATE, Role.STATE)  # by the caller, for its next call
SAME_MEMORY = "the device's memory is the host's, and nothing is won"
LATE = (Verdict.LEAK, Verdict.KEPT)


def advise(recording: Recording) -> Iterator[Advice]:
    known = passes(recording)
    if known is not None:
        for argument in arguments(recording):
            if piece := _idle(recording, known, argument):
                yield piece
    elif recording.clock is not None:
        yield from _of_earlier_steps(recording)


def _idle(recording: Recording, known: Passes, argument: Argument) -> Advice | None:
    """An argument most of which is not read before the peak, or not after it. A counter in it may be read any time."""
    size = recording.allocations.size[argument.rows]
    rows = argument.rows[SMALL * size >= size.max(initial=0)]
    everywhere = np.ones(known.length, dtype=bool)
    first, last = known.first_use(everywhere)[rows], known.last_use(everywhere)[rows]
    at, begin = peak(recording).position, int(known.uses[1].min(initial=known.length))
    long = (known.length - begin) // LONG
    later = (last >= 0) & (first > at) & (first[last >= 0].min(initial=known.length) > begin + long)
    over = (last >= 0) & (last < min(at, known.length - long)) & ~np.isin(roles(recording)[rows], KEPT)
    for idle, waiting in ((rows[later], True), (rows[over], False)):
        if 2 * int(recording.allocations.size[idle].sum()) > int(size.sum()):
            change = _moved if waiting else _freed
            if saved := saving(recording, change(recording, known, idle, everywhere)):
                return _piece_of(recording, argument, idle, saved, waiting)
    return None


def _moved(recording: Recording, known: Passes, rows: I64, everywhere: Bools) -> Change:
    """Each array is on the device from right before its first use, and what it comes back as goes at once."""
    found, row, own = twins(recording), row_of_value(recording), lives(recording)
    back = row[found.value[np.isin(row[found.argument], rows)]]
    back = back[back >= 0].astype(np.int64)
    both = np.union1d(rows, back)
    regions = np.unique(recording.allocations.region[both]).astype(np.int64)
    gone = released(recording, regions, np.zeros(len(regions), dtype=np.int64), both)
    there = Change(known.first_use(everywhere)[rows] - 1, known.last_use(everywhere)[rows] + 1, own.bytes[rows])
    return join(gone, there, Change(own.start[back], own.start[back] + 1, own.bytes[back]))


def _freed(recording: Recording, known: Passes, rows: I64, everywhere: Bools) -> Change:
    """Gone after the last use; memory that a result takes over stays."""
    region, own = recording.allocations.region, lives(recording)
    alone = rows[~np.isin(region[rows], region[np.setdiff1d(np.arange(len(region)), rows)])]
    regions = region[alone].astype(np.int64)
    gone = released(recording, regions, np.zeros(len(regions), dtype=np.int64), alone)
    before = np.full(len(alone), -1)
    return join(gone, Change(before, known.last_use(everywhere)[alone] + 1, own.bytes[alone]))


def _piece_of(recording: Recording, argument: Argument, rows: I64, saved: Saving, waiting: bool) -> Advice:
    size = int(recording.allocations.size[rows].sum())
    when = "is not read before the peak" if waiting else "is not read any more at the peak"
    if saved.bytes > size:
        when += ", and what it comes back as has memory of its own"
    lower = f"the peak is {bytes_text(saved.bytes)} lower"
    return Advice(
        kind=Kind.LATE_FREE,
        title=f"Keep {argument.name} on the host" if waiting else f"Free {argument.name} before the peak",
        sentence=f"{bytes_text(size)} of {argument.name} {when}. "
        + (
            f"Kept on the host, and brought array by array to where it is updated, {lower}, for moving it both ways."
            f"{on_cpu(recording, SAME_MEMORY)}"
            if waiting
            else f"If the device need not hold it to the end of {jitted(recording)}, {lower}."
        ),
        change=f"{argument.name} = jax.tree.map(lambda x: jax.device_put(x, x.sharding.with_memory_kind('pinned_host'))"
        f", {argument.name})  # and back to 'device' in {jitted(recording)}, where it is read"
        if waiting
        else f"compute what is made of {argument.name} in a jitted function of its own, and let the caller drop it "
        "before the rest runs",
        rows=by_size(recording, rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _of_earlier_steps(recording: Recording) -> Iterator[Advice]:
    """What an allocator still holds at the peak of what earlier steps allocated."""
    found = leaks(recording)
    if found.sites is None:
        return
    for number in np.flatnonzero(np.isin(found.sites.verdict, LATE)).tolist():
        if piece := _of_site(recording, found.sites, number, found.steps.position):
            yield piece


def _of_site(recording: Recording, sites: Sites, number: int, ends: I64) -> Advice | None:
    """As if each of the site's allocations were freed by the end of its step, in all steps."""
    table, at = recording.allocations, peak(recording).position
    group, _ = sites_of(table, np.arange(len(table)), sized=bool(sites.sized[number]))
    own = lives(recording).take(np.flatnonzero((group == group[sites.row[number]]) & (table.charge > 0)))
    step_ends = np.append(ends + 1, recording.length)[np.searchsorted(ends, own.start)]
    freed = np.where(own.start < 0, 0, np.maximum(step_ends, own.start + 1))
    saved = saving(recording, relived(recording, own.row, own._replace(end=np.minimum(own.end, freed))))
    old = own.row[(freed <= at) & (own.end > at)]
    if saved is None or not len(old):
        return None
    size = int(table.charge[old].sum())
    frames = recording.stacks.frames(int(table.stack[sites.row[number]]))
    source = next((f"{file}:{line}" for _, file, line in frames if file), name_of(recording, int(sites.row[number])))
    leaking = sites.verdict[number] == Verdict.LEAK
    count = f"{len(old)} allocations" if len(old) > 1 else "an allocation"
    return Advice(
        kind=Kind.LATE_FREE,
        title="Memory of earlier steps is never freed" if leaking else "Memory of the step before is freed late",
        sentence=f"At the peak {count} of earlier steps, from {source}, still hold{'' if len(old) > 1 else 's'} "
        f"{bytes_text(size)}. Were all freed when their step ends, the peak would be {bytes_text(saved.bytes)} lower.",
        change="drop what keeps them: a list that grows, a global, a loss kept as an array (float(loss) keeps a number)"
        if leaking
        else "donate the old state to the step that replaces it, and set gradients to None before the next step",
        rows=by_size(recording, old),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )
