"""Results that need not be: gradients that the update could use up, arguments handed back as they came."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, row_name, saving, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import function_name
from tb_memplugin.analysis.advice.support.passes import ProgramPasses, program_passes
from tb_memplugin.analysis.dataflow.graph import row_of_value, uses
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.replay.what_if import Change, combine, lifetimes, shrink_regions
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text


def advise(recording: Recording) -> Iterator[Advice]:
    known = program_passes(recording)
    if known is None:
        return
    results = _result_rows(recording, known)
    copied = _argument_copies(recording, known, results)
    if piece := _advise_copies(recording, copied):
        yield piece
    rest: I64 = results[~np.isin(results, np.r_[copied, row_of_value(recording)[input_output_pairs(recording).value]])]
    backward = known.within(Pass.BACKWARD) | known.within(Pass.REMATERIALIZED)
    if not backward.any():
        return
    forward = known.within(Pass.FORWARD)[known.made[rest]]
    if piece := _advise_gradients(recording, rest[backward[known.made[rest]]]):
        yield piece
    if piece := _advise_activations(recording, known, rest[forward]):
        yield piece


def _result_rows(recording: Recording, known: ProgramPasses) -> I64:
    """Rows of results in memory of their own."""
    values = known.values
    found = np.unique(row_of_value(recording)[values.result[(values.result >= 0) & (values.donor < 0)]])
    rows = found[found >= 0].astype(np.int64)
    made: I64 = rows[(known.made[rows] >= 0) & (values.argument[known.value[rows]] < 0)].astype(np.int64)
    return made


def _argument_copies(recording: Recording, known: ProgramPasses, results: I64) -> I64:
    """Results that are copies of an argument."""
    table = recording.allocations
    names = table.op.strings
    copies = [code for code in range(len(names)) if names[code] == "copy"]
    begin, read_at = uses(recording)
    arguments = np.flatnonzero(known.is_argument)
    reads = [read_at[begin[row] : begin[row + 1]] for row in arguments.tolist()]
    given = np.concatenate([np.empty(0, dtype=np.int64), *reads])
    return results[np.isin(table.op.codes[results], copies) & np.isin(known.made[results], given)]


def _advise_copies(recording: Recording, rows: I64) -> Advice | None:
    return _advise_results(
        recording, rows, np.zeros(len(rows), dtype=np.int64), "Results that are arguments as they came",
        "{what} only copies of arguments: the caller has them already.",
        f"do not return them from {function_name(recording)}, or donate the arguments, whose memory the results then "
        "reuse",
    )  # fmt: skip


def _advise_gradients(recording: Recording, rows: I64) -> Advice | None:
    start = lifetimes(recording).start[rows]
    return _advise_results(
        recording, rows, start + 1, "Gradients are returned",
        "{what} made in the backward pass and held to the end, for an update that is a program of its own.",
        f"update the weights inside {function_name(recording)} and donate the old ones: each gradient is then freed as "
        "soon as it is applied",
    )  # fmt: skip


def _advise_activations(recording: Recording, known: ProgramPasses, rows: I64) -> Advice | None:
    until = known.last_use(np.ones(known.length, dtype=bool))[rows] + 1
    return _advise_results(
        recording, rows, until, "Activations are returned",
        "{what} made in the forward pass and held to the end.",
        "return what is made of them (a loss, a metric, an argmax), or only a part",
    )  # fmt: skip


def _advise_results(
    recording: Recording, rows: I64, until: I64, title: str, sentence: str, change: str
) -> Advice | None:
    """As if these results were needed up to `until` and no longer."""
    if not len(rows):
        return None
    table, own = recording.allocations, lifetimes(recording).take(rows)
    regions = np.unique(table.region[rows]).astype(np.int64)
    shorter = Change(own.start, np.maximum(until, own.start), own.bytes)
    change_made = combine(shrink_regions(recording, regions, np.zeros(len(regions), dtype=np.int64), rows), shorter)
    saved = saving(recording, change_made)
    if saved is None:
        return None
    size, ordered = int(table.size[rows].sum()), sort_by_size(recording, rows)
    most = row_name(recording, int(ordered[0]))
    what = f"{len(rows)} results, {bytes_text(size)}, are" if len(rows) > 1 else f"{most}, {bytes_text(size)}, is"
    return Advice(
        kind=AdviceKind.OUTPUTS,
        title=title,
        sentence=f"{sentence.format(what=what)} Without that the peak is {bytes_text(saved.bytes)} lower.",
        change=change,
        rows=ordered,
        bytes=size,
        saving_bytes=saved.bytes,
        new_peak_bytes=saved.new_peak,
    )
