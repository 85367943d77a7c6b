"""Advice on an allocator: memory from earlier steps that is still allocated at the peak, and memory in gaps.

Memory from earlier steps is leaked, or freed a step late. Compiled programs have gaps as well, but we know no change of
the code that reliably makes them smaller.
"""

import re
from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, is_worthwhile, row_name, saving, sort_by_size
from tb_memplugin.analysis.fragmentation import fragmentation
from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_steps import LeakSites, leaks
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import frame_text, user_frames
from tb_memplugin.analysis.replay.what_if import lifetimes, replace_lifetimes
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import group_by_site, live_rows
from tb_memplugin.analysis.usage.steps import steps
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted, percent_text

LATE = (Verdict.LEAK, Verdict.KEPT)
FIX_JAX_LEAK = (
    "drop the reference that keeps them: a growing list, a global, a loss stored as an array (store float(loss))"
)
FIX_TORCH_LEAK = (
    "drop the reference that keeps them: a growing list, a global, a loss stored with its graph (store loss.item())"
)
FREE_JAX_STATE = "donate the old state to the step that replaces it (donate_argnums of jax.jit)"
FREE_TORCH_STATE = "update the old tensors in place, or delete them before allocating the new ones"


def advise_earlier_steps(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for each line of user code, for all of its sizes and operations together."""
    found = leaks(recording) if len(steps(recording).position) else None
    if found is None or found.sites is None:
        return
    for (verdict, source), sites in _sites_by_line(recording, found.sites).items():
        rows = _rows_of_sites(recording, found.sites, np.array(sites))
        if piece := _advise_line(recording, source, rows, found.steps.position, verdict == Verdict.LEAK):
            yield piece


def _sites_by_line(recording: Recording, sites: LeakSites) -> dict[tuple[Verdict, str], list[int]]:
    """Group late sites by line: the user's innermost frame, else a frame with a file, else the allocation's name.

    Gradients that are kept until the next step are left to gradients.py.
    """
    stacks, found = recording.stacks, dict[tuple[Verdict, str], list[int]]()
    own = np.append(user_frames(recording), np.int32(-1))
    late = np.isin(sites.verdict, LATE) & (roles(recording)[sites.row] != Role.GRADIENT)
    for number in np.flatnonzero(late).tolist():
        row = int(sites.row[number])
        leaf = int(recording.allocations.stack[row])
        frames = (f"{file}:{line}" for _, file, line in stacks.frames(leaf) if file)
        source = frame_text(stacks, int(own[leaf])) if own[leaf] >= 0 else next(frames, row_name(recording, row))
        found.setdefault((Verdict(int(sites.verdict[number])), source), []).append(number)
    return found


def _rows_of_sites(recording: Recording, sites: LeakSites, which: I64) -> I64:
    table = recording.allocations
    found = np.zeros(len(table), dtype=bool)
    for sized in (True, False):
        if (chosen := which[sites.sized[which] == sized]).size:
            site, _ = group_by_site(table, np.arange(len(table)), sized=sized)
            found |= np.isin(site, site[sites.row[chosen]])
    return np.flatnonzero(found & (table.charge > 0))


def _advise_line(recording: Recording, source: str, rows: I64, ends: I64, leaking: bool) -> Advice | None:
    """Simulate that each allocation is freed at the end of its step, in all steps."""
    position, own = peak(recording).position, lifetimes(recording).take(rows)
    step_ends = np.append(ends + 1, recording.length)[np.searchsorted(ends, own.start)]
    freed = np.where(own.start < 0, 0, np.maximum(step_ends, own.start + 1))
    saved = saving(recording, replace_lifetimes(recording, own.row, own._replace(end=np.minimum(own.end, freed))))
    old = own.row[(freed <= position) & (own.end > position)]
    if saved is None or not len(old):
        return None
    size = int(recording.allocations.charge[old].sum())
    torch = recording.kind.is_torch
    change = (FIX_TORCH_LEAK if torch else FIX_JAX_LEAK) if leaking else (FREE_TORCH_STATE if torch else FREE_JAX_STATE)
    return Advice(
        kind=AdviceKind.LATE_FREE,
        title=f"Memory from earlier steps is never freed: {source}"
        if leaking
        else f"Memory from the previous step is freed late: {source}",
        sentence=f"At the peak, {counted(len(old), 'allocation')} from earlier steps, made at {source}, still "
        f"{agree(len(old), 'takes', 'take')} {bytes_text(size)}. Freeing each at the end of its step {saved.effect}.",
        change=change,
        rows=sort_by_size(recording, old),
        bytes=size,
        saving=saved,
    )


MIN_SHARE = 0.05  # a choice: gaps below this share of the allocator's memory are no reason to change anything
TORCH = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
EXPANDABLE = (
    "Segments are expandable already. Use fewer distinct tensor sizes: pad batches and sequences to the same lengths, "
    "and allocate caches once, before short-lived tensors."
)
# XLA's allocator on NVIDIA GPUs; only there can another one replace it.
GPU_ALLOCATOR = re.compile(r"GPU_\d+_\w+")
ASYNC = "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"
FEWER_SIZES = "Use fewer distinct array sizes: pad batches and sequences to the same lengths, and allocate caches once."
LIVE_ARRAYS = "live arrays"  # a recording of capture.track(): arrays, not an allocator's memory


def advise_fragmentation(recording: Recording) -> Iterator[Advice]:
    """Yield a piece if gaps take a large share of an allocator's memory."""
    top = peak(recording)
    if recording.program is not None or recording.memory.endswith(LIVE_ARRAYS):
        return
    free = fragmentation(recording)
    if not 0 <= top.position < len(free.fragmented):
        return
    gaps, largest = free.fragmented[top.position], free.largest_free[top.position]
    # If more memory is free than used, the next request will fit.
    if not (np.isfinite(gaps) and gaps + largest <= top.bytes):
        return
    lost, held, live = int(gaps), top.bytes + int(gaps + largest), live_rows(recording, top.position)
    if lost < MIN_SHARE * held or not is_worthwhile(recording, lost):
        return
    yield Advice(
        kind=AdviceKind.FRAGMENTATION,
        title=f"Fragmentation: {percent_text(lost, held)} of the allocator's memory",
        sentence=f"At the peak, {bytes_text(lost)} of the {bytes_text(held)} of the allocator's memory are gaps "
        "between buffers: reserved, but only usable for buffers smaller than a gap. They are not part of the peak, "
        "but must fit in the device.",
        change=_less_fragmentation(recording),
        rows=sort_by_size(recording, live),
        bytes=int(recording.allocations.charge[live].sum()),
        saving=Saving(held, lost, lost, lost, of="reserved"),
    )


def _less_fragmentation(recording: Recording) -> str:
    """Return the change that makes gaps smaller. In PyTorch, only expandable segments have `segment_map` events."""
    if not recording.kind.is_torch:
        return ASYNC if GPU_ALLOCATOR.fullmatch(recording.memory) else FEWER_SIZES
    state = recording.caching_allocator
    strings = state.events.strings if state is not None and state.events is not None else ()
    return EXPANDABLE if "segment_map" in (strings[i] for i in range(len(strings))) else TORCH
