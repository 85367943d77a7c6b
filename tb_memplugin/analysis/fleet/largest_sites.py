"""The largest sites at a recording's peak, named so that those of several hosts can be compared."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.ownership.source_lines import LINE, base_name, source_frames
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED, group_by_site, live_rows, unexplained_bytes
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.fleet import MAX_SITES, Site
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording

BEFORE = "allocated before the profile"
MAX_GROUPS = 4096  # that are named; bounds the loop over them


def largest_sites(recording: Recording) -> tuple[tuple[Site, ...], int]:
    """Return the largest sites at the peak, largest first, and the bytes of all others."""
    position = peak(recording).position
    rows = live_rows(recording, position)
    columns = recording.allocations
    early = (columns.start[rows] < 0) & (recording.axis is Axis.TIME)
    sums = {BEFORE: int(columns.charge[rows[early]].sum()), UNEXPLAINED: unexplained_bytes(recording, position)}
    rest = _add_named(recording, rows[~early], sums)
    found = sorted((Site(text, size) for text, size in sums.items() if size > 0), key=lambda site: -site.bytes)
    return tuple(found[:MAX_SITES]), rest + sum(site.bytes for site in found[MAX_SITES:])


def _add_named(recording: Recording, rows: I64, sums: dict[str, int]) -> int:
    """Add the bytes of rows, which are largest first, by the names of their sites. Return the bytes of the others."""
    group, groups = group_by_site(recording.allocations, rows, sized=False)
    if not len(rows):
        return 0
    size = np.bincount(group, recording.allocations.charge[rows], groups).astype(np.int64)
    _, first = np.unique(group, return_index=True)
    largest = np.argsort(-size, kind="stable")
    for number in largest[:MAX_GROUPS].tolist():
        name = site_name(recording, int(rows[first[number]]))
        sums[name] = sums.get(name, 0) + int(size[number])
    return int(size[largest[MAX_GROUPS:]].sum())


def site_name(recording: Recording, row: int) -> str:
    """Return the user's line and function, `checkpoint.py:88 device_put`, or what a program's line computes.

    Without a line, return the recording's own name.
    """
    rows, stacks = recording.allocations, recording.stacks
    name, leaf = rows.name[row], int(rows.stack[row])
    frame = int(source_frames(recording)[leaf]) if 0 <= leaf < len(stacks.parent) else -1
    if frame < 0 or not stacks.file[frame]:
        return base_name(name) if LINE.fullmatch(name) else name or rows.op[row] or rows.op_name[row] or "unnamed"
    line = f"{base_name(stacks.file[frame])}:{stacks.line[frame]}"
    return f"{line} {(recording.kind.has_program and rows.op[row]) or stacks.function[frame]}".rstrip()
