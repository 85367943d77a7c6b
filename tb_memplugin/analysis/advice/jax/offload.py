"""Arguments that are not read before the peak: until then they could wait on the host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, cpu_note, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import function_name
from tb_memplugin.analysis.advice.support.idle_arguments import IdleArguments, idle_before_peak
from tb_memplugin.analysis.advice.support.passes import program_passes
from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.replay.what_if import Change, combine, lifetimes, shrink_regions
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

SAME_MEMORY = "the device's memory is the host's, and nothing is won"


def advise(recording: Recording) -> Iterator[Advice]:
    """One piece, of all such arguments together: it is one change, and what each saves depends on the others."""
    known = program_passes(recording)
    idle = idle_before_peak(recording, known) if known is not None else None
    saved = saving(recording, _offload_change(recording, idle)) if idle is not None and idle.names else None
    if idle is None or saved is None:
        return
    size, names = int(recording.allocations.size[idle.rows].sum()), idle.listed
    twice = f", and what {idle.words('it comes', 'they come')} back as has memory of its own" * (saved.bytes > size)
    yield Advice(
        kind=AdviceKind.OFFLOAD,
        title=f"Keep {names} on the host",
        sentence=f"{bytes_text(size)} of {names} {idle.words('is', 'are')} not read before the peak{twice}. Kept on "
        "the host, and brought array by array to where it is updated, the peak is "
        f"{bytes_text(saved.bytes)} lower, for moving it both ways.{cpu_note(recording, SAME_MEMORY)}",
        change=f"{names} = jax.tree.map(lambda x: jax.device_put(x, x.sharding.with_memory_kind('pinned_host')), "
        f"{idle.words(names, f'({names})')})  # and back to 'device' in {function_name(recording)}, where it is read",
        rows=sort_by_size(recording, idle.rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _offload_change(recording: Recording, idle: IdleArguments) -> Change:
    """Each array is on the device from right before its first use, and what it comes back as goes at once."""
    found, row, own = input_output_pairs(recording), row_of_value(recording), lifetimes(recording)
    back = row[found.value[np.isin(row[found.argument], idle.rows)]]
    back = back[back >= 0].astype(np.int64)
    both = np.union1d(idle.rows, back)
    regions = np.unique(recording.allocations.region[both]).astype(np.int64)
    gone = shrink_regions(recording, regions, np.zeros(len(regions), dtype=np.int64), both)
    there = Change(idle.first - 1, idle.last + 1, own.bytes[idle.rows])
    return combine(gone, there, Change(own.start[back], own.start[back] + 1, own.bytes[back]))
