"""Advice to shard arguments that are replicated on several devices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import argument_parts
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value, uses
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import Change, combine, lifetimes, resize_rows
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece for each replicated argument, and one for all optimizer state."""
    copies, role = _copy_counts(recording), roles(recording)
    together: dict[str | None, list[tuple[str, I64]]] = {}
    for share in argument_parts(recording) if len(copies) else ():
        rows = share.rows[copies[share.rows] > 1]
        if len(rows):
            state = bool((role[rows] == Role.OPTIMIZER_STATE).all())
            together.setdefault(None if state else share.name, []).append((share.name, rows))
    for members in together.values():
        rows = np.concatenate([rows for _, rows in members])
        if piece := _advise_sharding(recording, [name for name, _ in members], rows, copies[rows]):
            yield piece


def _copy_counts(recording: Recording) -> I64:
    """Return how many devices hold a copy of each row, 1 for rows that are no arguments; empty if unknown."""
    graph, program = dataflow_graph(recording), recording.program
    if graph is None or program is None or program.copies is None:
        return np.empty(0, dtype=np.int64)
    values, row = graph.values, row_of_value(recording)
    given = np.flatnonzero((values.argument >= 0) & (row >= 0))
    if values.argument.max(initial=-1) >= len(program.copies):
        return np.empty(0, dtype=np.int64)
    found = np.ones(len(recording.allocations), dtype=np.int64)
    found[row[given]] = program.copies[values.argument[given]]
    return found


def _advise_sharding(recording: Recording, names: list[str], rows: I64, copies: I64) -> Advice | None:
    change, gathered = _sharding_change(recording, rows, copies)
    saved = saving(recording, change)
    if saved is None:
        return None
    size, devices = int(recording.allocations.size[rows].sum()), int(copies.max())
    names_text = ", ".join(names)
    put = names_text if len(names) == 1 else f"({names_text})"
    gathering = f"{agree(len(names), 'It is', 'They are')} gathered again for each use."
    cost = gathering if gathered else "Updates are elementwise and need no gathering."
    return Advice(
        kind=AdviceKind.REPLICATION,
        title=f"Shard {names_text} over {devices} devices",
        sentence=f"{bytes_text(size)} of {names_text} are replicated on {devices} devices. Sharding "
        f"{agree(len(names), 'it', 'them')} {saved.effect} on every device. {cost}",
        change=f"jax.device_put({put}, NamedSharding(mesh, PartitionSpec(axis)))  # axis: the mesh axis that splits "
        "the batch; use the same in in_shardings and out_shardings",
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving=saved,
    )


def _sharding_change(recording: Recording, rows: I64, copies: I64) -> tuple[Change, bool]:
    """Shrink the arguments and their updated results to one shard; gather an argument in full while it is read."""
    table, own = recording.allocations, lifetimes(recording)
    part = -(-table.size // np.maximum(np.bincount(rows, copies, len(table)).astype(np.int64), 1))
    found, row = input_output_pairs(recording), row_of_value(recording)
    back_of = np.full(len(table), -1, dtype=np.int64)
    both = (row[found.argument] >= 0) & (row[found.value] >= 0)
    back_of[row[found.argument[both]]] = row[found.value[both]]
    back = back_of[rows]
    back, from_part = back[back >= 0], part[rows][back >= 0]
    all_rows, sizes = np.r_[rows, back], np.r_[part[rows], from_part]
    change = resize_rows(recording, all_rows, sizes)
    elementwise = roles(recording)[rows] == Role.OPTIMIZER_STATE
    begin, read_at = uses(recording)
    whole = rows[~elementwise]
    count = begin[whole + 1] - begin[whole]
    at = np.concatenate([np.empty(0, np.int64), *(read_at[begin[r] : begin[r + 1]] for r in whole.tolist())])
    gathered = Change(at, at + 1, np.repeat(own.bytes[whole] - part[whole], count))
    return combine(change, gathered), bool(len(whole))
