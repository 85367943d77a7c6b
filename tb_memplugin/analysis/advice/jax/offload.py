"""Advice to offload arguments to the host that are first read after the peak."""

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

SAME_MEMORY = "device and host memory are the same, so this saves nothing"


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all such arguments: they are one change, and what each saves depends on the others."""
    passes = program_passes(recording)
    idle = idle_before_peak(recording, passes) if passes is not None else None
    saved = saving(recording, _offload_change(recording, idle)) if idle is not None and idle.names else None
    if idle is None or saved is None:
        return
    size, names = int(recording.allocations.size[idle.rows].sum()), idle.names_text
    twice = f", and the updated {idle.agree('value has', 'values have')} separate memory" * (saved.bytes > size)
    yield Advice(
        kind=AdviceKind.OFFLOAD,
        title=f"Offload {names} to the host",
        sentence=f"{bytes_text(size)} of {names} are first read after the peak{twice}. Keeping "
        f"{idle.agree('it', 'them')} on the host, and copying each array to the device only for its update, "
        f"{saved.effect}. The cost is the transfer in both directions.{cpu_note(recording, SAME_MEMORY)}",
        change=f"{names} = jax.tree.map(lambda x: jax.device_put(x, x.sharding.with_memory_kind('pinned_host')), "
        f"{idle.agree(names, f'({names})')})  # and back to 'device' in {function_name(recording)}, where it is read",
        rows=sort_by_size(recording, idle.rows),
        bytes=size,
        saving=saved,
    )


def _offload_change(recording: Recording, idle: IdleArguments) -> Change:
    """Put each array on the device right before its first use, and remove its updated value at once."""
    found, row, own = input_output_pairs(recording), row_of_value(recording), lifetimes(recording)
    back = row[found.value[np.isin(row[found.argument], idle.rows)]]
    back = back[back >= 0].astype(np.int64)
    both = np.union1d(idle.rows, back)
    regions = np.unique(recording.allocations.region[both]).astype(np.int64)
    gone = shrink_regions(recording, regions, np.zeros(len(regions), dtype=np.int64), both)
    there = Change(idle.first - 1, idle.last + 1, own.bytes[idle.rows])
    return combine(gone, there, Change(own.start[back], own.start[back] + 1, own.bytes[back]))
