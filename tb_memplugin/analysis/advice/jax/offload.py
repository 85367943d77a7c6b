"""Advice to keep an optimizer's state on the host while gradients are computed.

Within one program this fails: XLA may copy the state to the device before the forward pass, and then the peak is as
high as before, or higher. So the advice is to make the update a program of its own. A CPU's memory is the host's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Saving, promise, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import function_name
from tb_memplugin.analysis.advice.support.idle_arguments import IdleArguments, state_idle_before_peak
from tb_memplugin.analysis.advice.support.offload_code import offload_code
from tb_memplugin.analysis.advice.support.passes import program_passes
from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, peak_after, remove_rows, shrink_regions
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all such state: it is one change, and what each array saves depends on the others."""
    passes = program_passes(recording)
    if passes is None or not passes.within(Pass.BACKWARD).any() or _backend(recording) is None:
        return
    idle = state_idle_before_peak(recording, passes)
    saved = _saving(recording, idle) if idle.names else None
    if saved is None:
        return
    size, names, them = int(recording.allocations.size[idle.rows].sum()), idle.names_text, idle.agree("it", "them")
    yield Advice(
        kind=AdviceKind.OFFLOAD,
        title=f"Offload {names} to the host",
        sentence=f"{bytes_text(size)} of {names} are first read after the peak. Computing the gradients in one "
        f"program and the update in another, and keeping {them} on the host except for the update, {saved.effect}. "
        "The cost is the transfer in both directions.",
        change=offload_code(idle.names, function_name(recording)),
        rows=sort_by_size(recording, idle.rows),
        bytes=size,
        saving=saved,
    )


def _backend(recording: Recording) -> Backend | None:
    """Return the accelerator that the program was compiled for; None for a CPU."""
    backend = recording.program.backend if recording.program is not None else Backend.UNKNOWN
    return backend if backend in (Backend.TPU, Backend.GPU) else None


def _saving(recording: Recording, idle: IdleArguments) -> Saving | None:
    """Return what two programs save: the first returns the gradients, the second takes them and the state.

    Compilers may place temporary memory in results that are not written yet, so the gradients cost at most their size.
    The compiler for TPUs rarely does so.
    """
    table, role, pairs = recording.allocations, roles(recording), input_output_pairs(recording)
    row = row_of_value(recording)
    argument, result = row[pairs.argument].astype(np.int64), row[pairs.value].astype(np.int64)
    known = (argument >= 0) & (result >= 0)
    trained = known & (role[argument] == Role.PARAMETER)
    weights = int(table.size[argument[trained]].sum())
    returned = result[known & np.isin(argument, idle.rows)]
    both = np.union1d(idle.rows, returned)
    regions = np.unique(table.region[both]).astype(np.int64)
    gone = shrink_regions(recording, regions, np.zeros(len(regions), dtype=np.int64), both)
    # Gradients replace new weights that have memory of their own.
    gradients = int(table.size[argument[trained & (pairs.donated != 0)]].sum())
    temporary = np.flatnonzero((role == Role.GRADIENT) & (table.charge > 0))
    apart = combine(gone, remove_rows(recording, temporary))
    before, update = peak(recording).bytes, 2 * weights + int(table.size[idle.rows].sum())
    most = before - max(peak_after(recording, apart).bytes, update)
    whole = Change(np.array([-1]), np.array([recording.length]), np.array([gradients]))
    least = before - max(peak_after(recording, combine(apart, whole)).bytes, update)
    expected = least if _backend(recording) is Backend.TPU else (least + most) // 2
    return promise(recording, expected, least, most)
