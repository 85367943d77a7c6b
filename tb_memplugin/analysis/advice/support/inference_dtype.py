"""Advice to store weights and caches of a program without training in bf16."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, cpu_note, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import SMALL_SHARE, arguments
from tb_memplugin.analysis.advice.support.narrowing import CAST, WIDE, WIDENED, casts_of, halve, wide_rows, with_results
from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, resize_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text


def advise_inference(recording: Recording, passes: ProgramPasses, rows: I64) -> Iterator[Advice]:
    """Yield advice on the weights and caches of a program without training."""
    if not len(rows):
        return
    stored = with_results(recording, rows)
    casts = casts_of(recording, passes, stored)
    cast = resize_rows(recording, casts, np.zeros(len(casts), dtype=np.int64))
    wide = wide_rows(recording)
    inputs = np.flatnonzero(wide & passes.is_argument & (roles(recording) == Role.INPUT))
    with_inputs = combine(halve(recording, np.union1d(stored, inputs)), cast)
    # What is computed from narrow inputs may be narrow, too.
    computed = combine(halve(recording, np.flatnonzero(wide)), cast)
    stored_only = halve(recording, stored)
    saved = saving(recording, with_inputs, stored_only, computed)
    if recording.program is not None and recording.program.backend is Backend.GPU:
        # Where inputs stay in f32, a product may read a copy of the array that is widened again; on TPU, it is fused.
        largest = int(recording.allocations.size[rows].max())
        widened = Change(np.array([-1]), np.array([recording.length]), np.array([largest]))
        saved = saving(recording, with_inputs, stored_only, computed, combine(stored_only, widened)) or saved
    if saved is None:
        return
    size = int(recording.allocations.size[rows].sum())
    table = recording.allocations
    names = [
        argument.name
        for argument in arguments(recording)
        if SMALL_SHARE * int(table.size[np.intersect1d(argument.rows, rows)].sum()) >= size
    ]
    names_text, count = ", ".join(names), len(names)
    yield Advice(
        kind=AdviceKind.DTYPE,
        title=f"Store {names_text} in bf16",
        sentence=f"{names_text} {agree(count, 'takes', 'take')} {bytes_text(size)} in {WIDE}, and this program does "
        f"not train {agree(count, 'it', 'them')}. Storing {agree(count, 'it', 'them')} in bf16 {saved.effect}."
        f"{cpu_note(recording, WIDENED)}",
        change=f"{CAST}{names_text} = {', '.join(f'narrow({name})' for name in names)}  # once, before the call; cast "
        "the inputs, too, or they widen the products",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving=saved,
    )
