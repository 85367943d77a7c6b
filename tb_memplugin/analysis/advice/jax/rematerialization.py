"""Advice to rematerialize, with jax.checkpoint, tensors that the forward pass keeps for the backward pass.

If jax.checkpoint wraps a layer, only the layer's inputs are kept, and the backward pass recomputes the other tensors
when it reaches the layer. If it wraps the body of a scan, values are recomputed instead of stacked for each iteration.
"""

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import (
    Advice,
    AdviceKind,
    Saving,
    Work,
    cpu_note,
    is_worthwhile,
    promise,
    sort_by_size,
)
from tb_memplugin.analysis.advice.support import scans
from tb_memplugin.analysis.advice.support.layer_code import (
    CallSite,
    Operations,
    call_site,
    called_functions,
    has_other_lines,
    layer_code,
    leaves_below,
    one_after_another,
)
from tb_memplugin.analysis.advice.support.passes import PRODUCTS, Layers, ProgramPasses, largest_made, program_passes
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.source_lines import frame_text, framework_frames
from tb_memplugin.analysis.replay.program_graph import ProgramGraph, program_graph
from tb_memplugin.analysis.replay.recompute import LayerNodes, Recomputation
from tb_memplugin.analysis.replay.schedule_graph import lower_peak
from tb_memplugin.analysis.replay.what_if import (
    Change,
    RowLifetimes,
    concatenate_lifetimes,
    lifetimes,
    replace_lifetimes,
)
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import F64, I32, I64, Mask, marked, smallest_per
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.row_groups import group_rows
from tb_memplugin.sizes import bytes_text, counted


def repeated_layers(recording: Recording, passes: ProgramPasses) -> Layers | None:
    """Return the calls or iterations that keep the most for the backward pass; None if nothing repeats.

    Operations with the same call stack and name are one operation of the source that runs several times. Below a line
    that runs a layer, all operations repeat equally often; the innermost such line is taken. A position of the backward
    pass belongs to the layer whose values it reads.
    """
    stacks = recording.stacks
    backward = passes.within(Pass.BACKWARD) | passes.within(Pass.REMATERIALIZED)
    if not backward.any():
        return None
    named = passes.is_named
    forward = np.flatnonzero(passes.within(Pass.FORWARD) & named)
    if not len(forward):
        return None
    stack = passes.stack
    kept = np.zeros(passes.length)
    rows = np.flatnonzero((passes.last_use(backward) >= 0) & (passes.made >= 0) & ~passes.is_argument)
    np.add.at(kept, passes.named_by[passes.made[rows]], recording.allocations.size[rows])
    key, count = _sources(passes, stack, forward)
    turns = _turns(count, kept[forward])
    later = np.flatnonzero(backward & named)
    often_later = stack[later[_sources(passes, stack, later)[1] >= max(turns - 1, 2)]]
    weight, is_product = _reads_weight(passes)[forward], passes.does(*PRODUCTS)[forward]
    made = largest_made(passes.values, passes.values.elements, passes.length)[forward]
    operations = Operations(stack[forward], count, kept[forward], weight, is_product, made)
    site = call_site(stacks, operations, turns, often_later) if turns else None
    if site is None or framework_frames(stacks)[site.frames].all():
        return None
    key_later, count_later = _sources(passes, stack, later)
    instance, found = np.full(passes.length, -1, dtype=np.int32), list[Layers]()
    for one in one_after_another(stacks, operations, site):
        turn = np.full(passes.length, -1, dtype=np.int32)
        below = np.isin(stack[forward], leaves_below(stacks, stack[forward], one.frames))
        turns = _turns(np.where(below, count, 0), kept[forward]) or turns
        for positions, sources, often, reverse in ((forward, key, count, False), (later, key_later, count_later, True)):
            inside = np.isin(stack[positions], leaves_below(stacks, stack[positions], one.frames))
            turn[positions] = _number_turns(sources, np.where(inside, often, 0), turns, reverse)
        instance = np.where(turn >= 0, turn + sum(layers.count for layers in found), instance).astype(np.int32)
        found.append(_named(recording, one, stack[forward[turn[forward] >= 0]], turn, turns))
    name, several, code = (
        list(dict.fromkeys(texts)) for texts in zip(*((one.name, one.several, one.code) for one in found), strict=True)
    )
    total = sum(layers.count for layers in found)
    return Layers(" and ".join(name), " and ".join(several), "\n".join(code), total, instance[passes.named_by])


def _sources(passes: ProgramPasses, stack: I32, positions: I64) -> tuple[I64, I64]:
    """Return a number for each position's operation in the source, and the number of positions with that operation."""
    key = group_rows(column[positions] for column in (passes.scope_code, passes.op.codes, stack)).number
    return key, np.bincount(key)[key]


def _turns(count: I64, kept: F64) -> int:
    """Return how often the operations that keep the most bytes run; 0 if none runs twice."""
    size = np.append(np.bincount(count, kept), 0.0)
    size[:2] = 0
    most = int(np.argmax(size))
    # The first or the last turn is often fused differently.
    return most + (size[most + 1] > 0) if size.any() else 0


def _reads_weight(passes: ProgramPasses) -> Mask:
    """Mark the positions that read an argument of real numbers, such as a weight, or a copy of one."""
    values = passes.values
    reader = values.used_value
    producer = values.producer[reader]
    of_argument = (values.argument[reader] >= 0) | (producer >= 0) & passes.op.isin({"parameter"})[
        passes.named_by[producer]
    ]
    return marked(passes.length, values.use[of_argument & (values.floating[reader] != 0)])


def _number_turns(key: I64, count: I64, turns: int, reverse: bool) -> I32:
    """Number each counted position by its turn. The backward pass runs the turns in reverse.

    The n-th run of an operation that runs once in each turn is in turn n; other positions are in the latest turn begun.
    """
    turn = np.full(len(key), -1, dtype=np.int32)
    once_each = np.flatnonzero(count == turns)
    if not len(once_each):
        return turn
    order = np.lexsort((once_each, key[once_each]))
    turn[once_each[order]] = np.arange(len(order)) % turns
    first = smallest_per(turn[once_each], once_each, turns, len(key))
    others = np.flatnonzero((count > 0) & (count != turns))
    begun = np.searchsorted(np.minimum.accumulate(first[::-1])[::-1], others, side="right") - 1
    turn[others] = np.maximum(begun, 0)
    return np.where((turn >= 0) & reverse, turns - 1 - turn, turn)


def _named(recording: Recording, site: CallSite, leaves: I32, turn: I32, turns: int) -> Layers:
    """Name the layers after the function that the line calls, or after the loop if it contains other code too.

    A line that computes a layer is the layer's whole function, unless that function has other lines.
    """
    stacks = recording.stacks
    called = called_functions(stacks, leaves, site.frames)
    if (
        len(site.frames) == 1
        and len(called) == 1
        and not (called[0] in site.frames and has_other_lines(stacks, called[0]))
    ):
        text = frame_text(stacks, called[0])
        code = layer_code(stacks, called[0], leaves, "where the layers are called")
        return Layers(text, f"{turns:,} calls of {text}", code, turns, turn)
    loop = f"the loop in {frame_text(stacks, min(site.frames, key=lambda frame: int(stacks.line[frame])))}"
    code = "body = jax.checkpoint(body)  # the loop's body, as a function"
    return Layers(loop, f"{turns:,} iterations of {loop}", code, turns, turn)


DOTS = "jax.checkpoint_policies.dots_saveable"
# XLA's CPU compiler drops the barriers between the two computations, and then merges them as common subexpressions.
# Loop bodies are not affected.
UNDONE = (
    "the saving is smaller, because the compiler merges the recomputation with the original, unless jax.jit gets "
    "compiler_options={'xla_disable_hlo_passes': 'cse_barrier_expander'}"
)
ORDERED = " The most is above what these tensors take, as the rest can then run in an order that frees memory sooner."
CLEARLY = 1.1  # times as much; less is no better, and not worth a range
INEXACT = 1.05
# Of three stored programs that were compiled again, the least saved 0.48 of what is expected, where bounds say nothing.
HOLDS = 0.45
# Layers that save less than this share of the peak are not worth another forward pass, and may cost memory: three
# convolutions that save 2 % by the replay take 75 % more. Of the stored programs, the least saves 9 %.
LEAST_SHARE = 0.025
IN_ORDER = 0.9  # the compiler changes the program's order a little: 0.7 to 0.95 keep all promises, 1.0 breaks one


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece for each family of layers, named or repeated, and for each scan.

    A family whose saving is less than half of another's is left out: its layers may be inside the others.
    """
    passes = program_passes(recording)
    if passes is None or not passes.within(Pass.BACKWARD).any():
        return
    of_scans = list(scans.advise(recording, passes))
    program = program_graph(recording)
    if program is not None:
        yield from _around_layers(program, passes, max((piece.saving.expected for piece in of_scans), default=0))
    yield from of_scans


def _around_layers(program: ProgramGraph, passes: ProgramPasses, by_scans: int) -> list[Advice]:
    """Return pieces on layers outside of scans, which save `by_scans` bytes."""
    found = [piece for layers in passes.layers if (piece := _advise_layers(program, passes, layers))]
    most = max((piece.saving.expected for piece in found), default=0)
    # Where layers have names and recomputing them saves nothing, another part of the same code hardly does.
    layers = repeated_layers(program.recording, passes) if found or not passes.layers else None
    other = _advise_layers(program, passes, layers) if layers is not None else None
    if other and other.saving.expected > max(CLEARLY * most, by_scans):
        return [other]
    return [piece for piece in found if 2 * piece.saving.expected > most]


def _advise_layers(program: ProgramGraph, passes: ProgramPasses, layers: Layers) -> Advice | None:
    recording, rows = program.recording, program.recording.allocations
    if _mostly_in_loops(program, passes.within(Pass.FORWARD) & (layers.instance >= 0)):
        return None
    nodes = layer_nodes(program, passes, layers)
    wrapped = Recomputation(program, nodes)
    dropped, unclear = (
        np.flatnonzero((program.buffer >= 0) & np.isin(passes.value, values))
        for values in (wrapped.dropped_values, wrapped.unclear_values)
    )
    size = int(rows.size[dropped].sum())
    replay = replace_lifetimes(recording, dropped, _until_recomputed(wrapped, dropped))
    saved = _saving(wrapped, replay) if size > int(rows.size[unclear].sum()) else None
    if saved is None or saved.expected < LEAST_SHARE * saved.before:
        return None
    sentence = (
        f"The forward pass of {layers.several} keeps {counted(len(dropped), 'tensor')}, {bytes_text(size)}, "
        f"for the backward pass. Keeping only each layer's inputs, and recomputing the rest, {saved.effect}. The cost "
        f"is one more forward pass.{ORDERED * (saved.at_most > size)}"
    )
    kept = _products(recording, passes)
    cheap = _saving(Recomputation(program, nodes, kept)) if np.isin(kept, wrapped.dropped_values).any() else None
    if cheap is not None:
        sentence += f" With policy={DOTS}, which recomputes no matrix product, it {cheap.effect}."
    return Advice(
        kind=AdviceKind.REMATERIALIZATION,
        title=f"Rematerialize {layers.name}",
        sentence=sentence + cpu_note(recording, UNDONE),
        change=layers.code,
        rows=sort_by_size(recording, dropped),
        bytes=size,
        saving=saved,
        work=Work(again=np.unique(program.position[np.flatnonzero(nodes.forward >= 0)]).astype(np.int64), dropped=size),
    )


def _mostly_in_loops(program: ProgramGraph, positions: Mask) -> bool:
    """Return whether most of these positions are in the bodies of loops, not in the program's entry computation."""
    schedule = program.data.program
    own = schedule.computation.isin({schedule.entry_computation})
    return bool(np.count_nonzero(positions & own) < np.count_nonzero(positions & ~own))


def layer_nodes(program: ProgramGraph, passes: ProgramPasses, layers: Layers) -> LayerNodes:
    """Return the layer of each operation in the forward pass, and after it."""
    at = program.position
    forward = passes.within(Pass.FORWARD)[at]
    after, instance = (at >= passes.backward_begins) & ~forward, layers.instance[at]
    return LayerNodes(
        np.where(forward, instance, -1).astype(np.int32), np.where(after, instance, -1).astype(np.int32), after,
        layers.count,
    )  # fmt: skip


def _products(recording: Recording, passes: ProgramPasses) -> I64:
    """Return the values that are matrix products of the forward pass. TPUs compute products inside other operations."""
    if recording.backend is Backend.TPU:
        return np.empty(0, dtype=np.int64)
    products = np.append(passes.does(*PRODUCTS) & passes.within(Pass.FORWARD), False)
    return np.flatnonzero(products[passes.values.producer])


def _until_recomputed(layers: Recomputation, dropped: I64) -> RowLifetimes:
    """Return the two lifetimes of each dropped row: up to its last read by the forward pass, and from when it is
    computed again on.
    """
    program = layers.program
    first, last = (program.position[node] for node in layers.absent(program.data.value[dropped]))
    own = lifetimes(program.recording).take(dropped)
    return concatenate_lifetimes(
        own._replace(end=np.clip(first + 1, own.start, own.end)), own._replace(start=np.clip(last, own.start, own.end))
    )


def _saving(layers: Recomputation, replay: Change | None = None) -> Saving | None:
    """Return what recomputing layers saves, if the compiler finds an order with a low peak.

    The saving is less if the compiler finds none, or if it found such an order for the program without recomputation.
    """
    order, base, graph = layers.order, layers.program.graph, layers.graph
    if len(order) < graph.nodes:  # a cycle: the compiler merged operations of several layers
        return None
    before = base.peak(base.own_order)
    if before > INEXACT * peak(layers.program.recording).bytes:
        return None
    least = graph.peak(lower_peak(graph, order))
    saved = before - least
    alike, in_order = base.peak(layers.program.lower_order) - least, before - graph.peak(order)
    bounds = [alike] if CLEARLY * alike < saved else []
    if CLEARLY * in_order < saved and is_worthwhile(layers.program.recording, in_order):
        bounds.append(int(IN_ORDER * in_order))
    return promise(layers.program.recording, saved, *bounds, replay=replay, holds=HOLDS)
