"""Arguments that are not read before the peak: until then they could wait on the host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, Kind, by_size, on_cpu, saving
from tb_memplugin.analysis.advice.support.arguments import jitted
from tb_memplugin.analysis.advice.support.idle_arguments import Idle, waiting
from tb_memplugin.analysis.advice.support.passes import passes
from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import twins
from tb_memplugin.analysis.replay.what_if import Change, join, lives, released
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

SAME_MEMORY = "the device's memory is the host's, and nothing is won"


def advise(recording: Recording) -> Iterator[Advice]:
    """One piece, of all such arguments together: it is one change, and what each saves depends on the others."""
    known = passes(recording)
    idle = waiting(recording, known) if known is not None else None
    saved = saving(recording, _moved(recording, idle)) if idle is not None and idle.names else None
    if idle is None or saved is None:
        return
    size, names = int(recording.allocations.size[idle.rows].sum()), idle.listed
    twice = f", and what {idle.words('it comes', 'they come')} back as has memory of its own" * (saved.bytes > size)
    yield Advice(
        kind=Kind.OFFLOAD,
        title=f"Keep {names} on the host",
        sentence=f"{bytes_text(size)} of {names} {idle.words('is', 'are')} not read before the peak{twice}. Kept on "
        "the host, and brought array by array to where it is updated, the peak is "
        f"{bytes_text(saved.bytes)} lower, for moving it both ways.{on_cpu(recording, SAME_MEMORY)}",
        change=f"{names} = jax.tree.map(lambda x: jax.device_put(x, x.sharding.with_memory_kind('pinned_host')), "
        f"{idle.words(names, f'({names})')})  # and back to 'device' in {jitted(recording)}, where it is read",
        rows=by_size(recording, idle.rows),
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )


def _moved(recording: Recording, idle: Idle) -> Change:
    """Each array is on the device from right before its first use, and what it comes back as goes at once."""
    found, row, own = twins(recording), row_of_value(recording), lives(recording)
    back = row[found.value[np.isin(row[found.argument], idle.rows)]]
    back = back[back >= 0].astype(np.int64)
    both = np.union1d(idle.rows, back)
    regions = np.unique(recording.allocations.region[both]).astype(np.int64)
    gone = released(recording, regions, np.zeros(len(regions), dtype=np.int64), both)
    there = Change(idle.first - 1, idle.last + 1, own.bytes[idle.rows])
    return join(gone, there, Change(own.start[back], own.start[back] + 1, own.bytes[back]))
