"""Advice to donate arguments that are returned updated, so that old and new values share memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tb_memplugin.analysis.advice.model import (
    Advice,
    AdviceKind,
    copied_on_gpu,
    is_worthwhile,
    safe_replay,
    saving,
    sort_by_size,
)
from tb_memplugin.analysis.advice.support.arguments import Argument, arguments, function_name
from tb_memplugin.analysis.dataflow.graph import DataflowGraph, copies, dataflow_graph, row_of_value, uses
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import (
    Change,
    combine,
    lifetimes,
    new_memory,
    rows_sharing_memory,
    shrink_regions,
)
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import RegionKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text

# An argument of which a smaller share is returned is an input that happens to resemble a result. Others are returned
# almost whole: on the stored programs, all shares from 0.01 to 0.9 give the same 46 pieces, and 1.0 gives 45.
MIN_RETURNED = 0.5
POSITIONAL = re.compile(r"args\[(\d{1,8})\]")  # the name of a positional argument
LAYOUT = re.compile(r"(\w+\[[\d,]*\])\{([\d,]*)")  # dimensions, and their order from the innermost


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all arguments: the memory of one may hold the updated values of another."""
    graph = dataflow_graph(recording)
    if graph is None or not (donated := _returned_arguments(recording)):
        return
    old, new = _donation_pairs(recording, graph, donated)
    saved = saving(recording, _donation_change(recording, graph, old, new))
    if saved is None:
        return
    size = int(recording.allocations.size[old].sum())
    # In another order, the temporaries that share the results' memory may find room elsewhere.
    least = min(saved.at_least, saved.expected - _relaid_out(recording, graph, new) // 2)
    copied = least - copied_on_gpu(recording, old[roles(recording)[old] == Role.PARAMETER])
    least = copied if is_worthwhile(recording, copied) else least
    saved = replace(saved, at_least=least, at_most=min(max(saved.at_most, size), peak(recording).bytes))
    if not is_worthwhile(recording, least):
        return
    saved = safe_replay(recording, saved)
    names = ", ".join(argument.name for argument in donated)
    count = len(donated)
    yield Advice(
        kind=AdviceKind.DONATION,
        title=f"Donate {names}",
        sentence=f"{names} {agree(count, 'is', 'are')} returned updated, so {bytes_text(size)} of "
        f"{agree(count, 'it', 'them')} are in memory twice: as "
        f"{agree(count, 'argument and as result', 'arguments and as results')}. Donating "
        f"{agree(count, 'it', 'them')} {saved.effect}. The caller must not use the old arrays afterwards.",
        change=jit_call(recording, donated),
        rows=sort_by_size(recording, old),
        bytes=size,
        saving=saved,
        edits=(f"donate:{','.join(argument.name for argument in donated)}",),
    )


def jit_call(recording: Recording, donated: Sequence[Argument]) -> str:
    """Return code that donates the arguments by name.

    JAX drops unused arguments, so argument numbers are known only if the names contain them, as in `*args`.
    """
    function, names = function_name(recording), [argument.name for argument in donated]
    numbers = [int(found[1]) for name in names if (found := POSITIONAL.fullmatch(name))]
    if len(numbers) == len(names):
        return f"{function} = jax.jit({function}, donate_argnums={tuple(numbers)})"
    if all(name.isidentifier() for name in names):
        return f"{function} = jax.jit({function}, donate_argnames={tuple(names)})"
    return f"{function} = jax.jit({function}, donate_argnums=numbers)  # numbers: those of {', '.join(names)}"


def _returned_arguments(recording: Recording) -> list[Argument]:
    """Return the arguments that are mostly returned updated, in this memory space, and not donated yet."""
    found, row, kind = input_output_pairs(recording), row_of_value(recording), recording.regions.kind
    old, new = row[found.argument].astype(np.int64), row[found.value].astype(np.int64)
    here = (old >= 0) & (new >= 0) & (found.donated == 0)
    old, new = old[here], new[here]
    region, size = recording.allocations.region, recording.allocations.size
    apart = (region[old] != region[new]) & ((kind[region[new]] & RegionKind.PARAMETER) == 0)
    apart &= _equal_layouts(recording, old, new)

    def is_returned(argument: Argument) -> bool:
        back = int(size[np.intersect1d(argument.rows, old[apart])].sum())
        return back > 0 and back >= MIN_RETURNED * int(size[argument.rows].sum())

    return [argument for argument in arguments(recording) if is_returned(argument)]


def _donation_pairs(recording: Recording, graph: DataflowGraph, donated: Sequence[Argument]) -> tuple[I64, I64]:
    """Return the rows of arguments and of the results that reuse them. JAX matches shapes and dtypes in order."""
    data = graph.values
    given: dict[int, list[int]] = {}
    for row in np.concatenate([argument.rows for argument in donated]).tolist():
        given.setdefault(int(data.shape[graph.value[row]]), []).append(row)
    row_of = row_of_value(recording)
    old, new = [], []
    for value, donor in zip(data.result.tolist(), data.donor.tolist(), strict=True):
        waiting = given.get(int(data.shape[value]), []) if value >= 0 and donor < 0 else []
        if waiting and row_of[value] >= 0:
            old.append(waiting.pop(0))
            new.append(int(row_of[value]))
    pairs = np.array(old, dtype=np.int64), np.array(new, dtype=np.int64)
    reused = _equal_layouts(recording, *pairs)
    return pairs[0][reused], pairs[1][reused]


def _equal_layouts(recording: Recording, old: I64, new: I64) -> Mask:
    """Mark the pairs that may share memory: XLA writes results of another layout elsewhere, even if donated."""
    shape = recording.allocations.shape
    found = ((LAYOUT.match(shape[a]), LAYOUT.match(shape[b])) for a, b in zip(old.tolist(), new.tolist(), strict=True))
    return np.array([not a or not b or a[1] != b[1] or a[2] == b[2] for a, b in found], dtype=bool)


def _relaid_out(recording: Recording, graph: DataflowGraph, new: I64) -> int:
    """Return the bytes of results that are computed in another layout and copied.

    Only the copy overwrites the argument, so the value before it needs memory of its own. In compiled programs, at most
    half of these bytes were live at once.
    """
    row = row_of_value(recording)
    source, target = (row[values].astype(np.int64) for values in copies(graph.values))
    moved = (source >= 0) & np.isin(target, new)
    source, target = source[moved], target[moved]
    copied = np.unique(target[~_equal_layouts(recording, source, target)])
    return int(recording.allocations.size[copied].sum())


def _donation_change(recording: Recording, graph: DataflowGraph, old: I64, new: I64) -> Change:
    """Remove the results' memory; temporaries that shared it need memory of their own.

    An argument that is read after its memory is overwritten by the result must be copied.
    """
    table, own = recording.allocations, lifetimes(recording)
    together, first = _rows_of_result(recording, graph, old, new)
    change = shrink_regions(recording, table.region[new].astype(np.int64), 0, together)
    begin, read_at = uses(recording)
    last = np.array([read_at[begin[row] : begin[row + 1]].max(initial=-1) for row in old.tolist()], dtype=np.int64)
    read_late = last > first
    copies = new_memory(first[read_late], last[read_late] + 1, own.bytes[old[read_late]])
    return combine(change, copies)


def _rows_of_result(recording: Recording, graph: DataflowGraph, old: I64, new: I64) -> tuple[I64, I64]:
    """Return all rows of the results' values, through loops and copies of arguments, and each value's first position.

    A row that a result overwrites, such as a gradient, is another value.
    """
    table, made = recording.allocations, graph.values.producer
    begin, read_at = uses(recording)
    found, first = [new], lifetimes(recording).start[new].copy()
    for at, (argument, result) in enumerate(zip(old.tolist(), new.tolist(), strict=True)):
        same = rows_sharing_memory(recording, np.array([result]))
        if len(same) == 1:
            continue
        copied = same[_made_by(recording, same, "copy")]
        copied = copied[np.isin(made[graph.value[copied]], read_at[begin[argument] : begin[argument + 1]])]
        looped = table.op[result] == "while"
        loop_rows = same[_made_by(recording, same, "while", "parameter")] if looped else same[:0]
        found += [copied, loop_rows]
        first[at] = min(first[at], *lifetimes(recording).start[np.r_[loop_rows, result]].tolist())
    return np.concatenate(found), first


def _made_by(recording: Recording, rows: I64, *ops: str) -> Mask:
    """Mark the rows that are computed by one of these operations."""
    return recording.allocations.op.take(rows).isin(ops)
