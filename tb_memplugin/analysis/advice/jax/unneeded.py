"""Advice on results that need not be returned, and on arguments that the program never reads."""

from collections.abc import Iterator, Sequence

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, copied_on_gpu, row_name, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import arguments, function_name
from tb_memplugin.analysis.advice.support.class_scores import advise_class_scores
from tb_memplugin.analysis.advice.support.passes import ProgramPasses, program_passes
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value, uses
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import (
    NO_CHANGE,
    Change,
    always,
    combine,
    lifetimes,
    resize_rows,
    rows_sharing_memory,
    shrink_regions,
)
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text, counted

REDUCTIONS = {"all-reduce", "all-reduce-done", "reduce-scatter"}


def advise_outputs(recording: Recording) -> Iterator[Advice]:
    """Yield a piece each for copies of arguments, gradients and activations among the results."""
    passes = program_passes(recording)
    if passes is None:
        return
    results = _result_rows(recording, passes)
    copied = _argument_copies(recording, passes, results)
    pieces = [
        _advise_copies(recording, copied),
        advise_class_scores(recording, passes, results[~np.isin(results, copied)]),
    ]
    rest: I64 = results[~np.isin(results, np.r_[copied, row_of_value(recording)[input_output_pairs(recording).value]])]
    backward = passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)
    if backward.any():
        made, is_copy = passes.made[rest], recording.allocations.op.isin({"copy"})[rest]
        # A copy of an activation at the program's end has its name, and seems rematerialized after the backward pass.
        forward = passes.within(Pass.FORWARD)[made] | passes.within(Pass.REMATERIALIZED)[made] & is_copy
        pieces.append(_advise_gradients(recording, passes, rest[_is_gradient(recording, passes, rest)]))
        pieces.append(_advise_activations(recording, passes, rest[forward]))
    yield from filter(None, pieces)


def _result_rows(recording: Recording, passes: ProgramPasses) -> I64:
    """Return the rows of results with separate memory."""
    values = passes.values
    found = np.unique(row_of_value(recording)[values.result[(values.result >= 0) & (values.donor < 0)]])
    rows = found[found >= 0].astype(np.int64)
    return rows[(passes.made[rows] >= 0) & (values.argument[passes.value[rows]] < 0)].astype(np.int64)


def _argument_copies(recording: Recording, passes: ProgramPasses, results: I64) -> I64:
    """Return the results that are copies of an argument."""
    row, read_at = passes.uses
    is_copy = recording.allocations.op.isin({"copy"})[results]
    return results[is_copy & np.isin(passes.made[results], read_at[passes.is_argument[row]])]


def _advise_copies(recording: Recording, rows: I64) -> Advice | None:
    return _advise_results(
        recording, rows, [(np.zeros(len(rows), dtype=np.int64), NO_CHANGE)], "Unchanged arguments are returned",
        "{what} only {copies} of arguments, which the caller already has.",
        f"do not return them from {function_name(recording)}, or donate the arguments, whose memory the results then "
        "reuse",
    )  # fmt: skip


def _is_gradient(recording: Recording, passes: ProgramPasses, rows: I64) -> Mask:
    """Mark gradients. Results that are computed in the backward pass may be new weights, too."""
    step = training_step(recording)
    if step is None:
        return np.zeros(len(rows), dtype=bool)
    updated = input_output_pairs(recording).value
    value = passes.value[rows]
    return (step.gradient[value] | np.isin(value, step.pairs.value)) & ~np.isin(value, updated)


def _advise_gradients(recording: Recording, passes: ProgramPasses, rows: I64) -> Advice | None:
    """Advise to apply gradients where they are computed.

    On TPU, the operation that computes a gradient applies it, unless devices sum their gradients in between. On GPU,
    the weight may be copied first if other operations still read it.
    """
    table = recording.allocations
    computed = np.maximum(lifetimes(recording).start[rows], passes.made[rows])  # a loop computes them until it ends
    applied, copied = computed + 1, always(recording, copied_on_gpu(recording, rows))
    if recording.backend is Backend.TPU:
        applied = np.where(table.op.isin(REDUCTIONS)[rows], computed + 1, computed)
    return _advise_results(
        recording, rows, [(applied, NO_CHANGE), (computed, NO_CHANGE), (computed + 1, copied)],
        "Gradients are returned",
        "{what} computed in the backward pass and kept to the end, for an update in another program.",
        f"update the weights inside {function_name(recording)} and donate the old ones: each gradient is then freed as "
        "soon as it is applied",
    )  # fmt: skip


def _advise_activations(recording: Recording, passes: ProgramPasses, rows: I64) -> Advice | None:
    """Advise to return fewer activations. The compiler may then keep others, and recompute these from them."""
    until = passes.last_use(np.ones(passes.length, dtype=bool))[rows] + 1
    computed = lifetimes(recording).start[rows]
    parameters = np.flatnonzero(passes.is_argument & (roles(recording) == Role.PARAMETER))
    copied = always(recording, copied_on_gpu(recording, parameters))
    return _advise_results(
        recording, rows, [(until, NO_CHANGE), (computed, NO_CHANGE), (until, copied)], "Activations are returned",
        "{what} computed in the forward pass and kept to the end.",
        "return only what you need of them: a loss, a metric, an argmax, a slice",
    )  # fmt: skip


def _in_loops(recording: Recording, rows: I64) -> I64:
    """Return the rows in which loops collect these results, one part in each iteration."""
    table = recording.allocations
    shared = rows_sharing_memory(recording, rows)
    collected = np.unique(table.canonical[shared[table.op.isin({"while"})[shared]]])
    return shared[np.isin(table.canonical[shared], collected)]


def _advise_results(
    recording: Recording, rows: I64, cases: Sequence[tuple[I64, Change]], title: str, sentence: str, change: str
) -> Advice | None:
    """Simulate that each of these results is needed only up to a position, with further changes.

    The first case is the expected one, the others are further decisions that the compiler may make.
    """
    if not len(rows):
        return None
    table, own = recording.allocations, lifetimes(recording).take(rows)
    regions = np.unique(table.region[rows]).astype(np.int64)
    removed = shrink_regions(recording, regions, 0, np.union1d(rows, _in_loops(recording, rows)))
    shorter = [
        combine(removed, Change(own.start, np.maximum(until, own.start), own.bytes, table.canonical[rows]), more)
        for until, more in cases
    ]
    saved = saving(recording, *shorter)
    if saved is None:
        return None
    size, ordered = int(table.size[rows].sum()), sort_by_size(recording, rows)
    largest, several = row_name(recording, int(ordered[0])), len(rows) > 1
    what = f"{len(rows):,} results, {bytes_text(size)}, are" if several else f"{largest}, {bytes_text(size)}, is"
    reason = sentence.format(what=what, copies="copies" if several else "a copy")
    return Advice(
        kind=AdviceKind.OUTPUTS,
        title=title,
        sentence=f"{reason} Not returning {'them' if several else 'it'} {saved.effect}.",
        change=change,
        rows=ordered,
        bytes=size,
        saving=saved,
    )


def advise_unused(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all arrays that are neither read nor returned."""
    rows = _never_read_rows(recording)
    if not len(rows):
        return
    saved = saving(recording, resize_rows(recording, rows, np.zeros_like(rows)))
    if saved is None:
        return
    size = int(recording.allocations.size[rows].sum())
    ordered = sort_by_size(recording, rows)
    names = [a.name for a in arguments(recording) if np.isin(a.rows, rows).any()]
    yield Advice(
        kind=AdviceKind.UNUSED,
        title=f"Remove unused arguments: {', '.join(names)}",
        sentence=f"{counted(len(rows), 'array')} of the arguments, {bytes_text(size)}, "
        f"{agree(len(rows), 'is', 'are')} neither read nor returned; the largest is "
        f"{recording.allocations.op_name[int(ordered[0])]}. Removing {agree(len(rows), 'it', 'them')} {saved.effect}.",
        change=f"remove them from the arguments of {function_name(recording)}, or leave keep_unused=False, with which "
        "JAX drops them",
        rows=ordered,
        bytes=size,
        saving=saved,
        edits=("drop-unused",),
    )


def _never_read_rows(recording: Recording) -> I64:
    graph = dataflow_graph(recording)
    if graph is None:
        return np.empty(0, dtype=np.int64)
    values = graph.values
    given = np.flatnonzero(values.argument >= 0)
    returned = np.isin(given, values.result) | np.isin(given, values.loop_carried[0])
    row = row_of_value(recording)[given[~returned]]
    row = row[row >= 0].astype(np.int64)
    begin, _ = uses(recording)
    unread: I64 = row[begin[row + 1] == begin[row]]
    return unread
