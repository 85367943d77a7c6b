"""Advice on arguments that wait in memory: those that are no longer needed at the peak, and optimizer state before it.

XLA frees no argument before a program ends, donated or not; only results reuse the memory of donated arguments.

Optimizer state can be on the host while gradients are computed, but not within one program: XLA may copy the state to
the device before the forward pass, and then the peak is as high as before, or higher. So the advice is to make the
update a program of its own. The memory of a CPU is the host's memory, so programs for it get no such advice.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.advice.model import (
    Advice,
    AdviceKind,
    Saving,
    Work,
    is_worthwhile,
    promise,
    results_text,
    saving,
    sort_by_size,
)
from tb_memplugin.analysis.advice.support.arguments import SMALL_SHARE, argument_parts, function_name
from tb_memplugin.analysis.advice.support.passes import PRODUCTS, ProgramPasses, program_passes
from tb_memplugin.analysis.dataflow.graph import row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs, with_updated
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import (
    Change,
    always,
    combine,
    lifetimes,
    new_memory,
    peak_after,
    remove_rows,
    shrink_regions,
)
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import agree, bytes_text

MAX_MOVES = 8  # of one value in a row, between memories and layouts
# Arguments that are read within the first fourth of the program are not worth moving. The stored programs get 41 pieces
# on offloading; with a third as the limit they get 40, with a half 39, and with smaller shares the same 41.
MIN_IDLE_SHARE = 4
KEPT = (Role.PARAMETER, Role.OPTIMIZER_STATE, Role.STATE)  # the caller keeps these for its next call


class IdleArguments(NamedTuple):
    """Arguments most of whose bytes are idle, and their idle rows."""

    names: list[str]
    rows: I64

    @property
    def names_text(self) -> str:
        return ", ".join(self.names)

    def agree(self, singular: str, plural: str) -> str:
        return agree(len(self.names), singular, plural)


def state_idle_before_peak(recording: Recording, passes: ProgramPasses) -> IdleArguments:
    """Find the optimizer state that is mostly first read after the peak, and not soon after the program begins.

    The rows are the whole state. State without a path of its own, because it lies beside the weights, is not found.
    """
    top, begin = peak(recording).position, int(passes.uses[1].min(initial=passes.length))
    soon = begin + (passes.length - begin) // MIN_IDLE_SHARE
    first = passes.first_use(np.ones(passes.length, dtype=bool))
    waits = (first < passes.length) & (first > max(top, soon)) & (roles(recording) == Role.OPTIMIZER_STATE)
    return _idle(recording, waits, whole=True)


def idle_after_use(recording: Recording, passes: ProgramPasses) -> IdleArguments:
    """Find the arguments that are last read before the peak and long before the end, and that no later call needs."""
    top, begin = peak(recording).position, int(passes.uses[1].min(initial=passes.length))
    late = passes.length - (passes.length - begin) // MIN_IDLE_SHARE
    last = passes.last_use(np.ones(passes.length, dtype=bool))
    separable = np.isin(np.arange(len(last)), row_of_value(recording)[separate_reads(passes)[0]])
    return _idle(recording, (last >= 0) & (last < min(top, late)) & ~np.isin(roles(recording), KEPT) & separable)


def separate_reads(passes: ProgramPasses) -> tuple[I64, I64]:
    """Return pairs of values: an argument that another function can read instead, and what that function returns.

    Operations of the user's own, outside of loops, read the argument, and nothing else that is large: neither weights
    nor activations.
    Compilers add operations that no user's code contains: unnamed ones, which only move a value, and ones with the name
    of a matrix product or a convolution, which prepare its operand.
    """
    values, program = passes.values, passes.program
    entry = program.computation.isin({program.entry_computation})
    value, position = values.used_value, values.use
    is_code = passes.is_named & ~passes.does(*PRODUCTS) & entry
    moves = ~passes.is_named
    origin = np.where(values.argument >= 0, np.arange(len(values.argument)), -1)
    for _ in range(MAX_MOVES):
        source, moved = np.full(passes.length + 1, -1), moves[position] & (origin[value] >= 0)
        source[position[moved]] = origin[value[moved]]
        new = (origin < 0) & (source[values.producer] >= 0)
        if not new.any():
            break
        origin[new] = source[values.producer[new]]
    total = np.bincount(position, values.elements[value], passes.length)
    elements = values.elements[value]
    alone = is_code[position] & (SMALL_SHARE * (total[position] - elements) <= elements)
    read = (origin[value] >= 0) & ~moves[position]
    together = np.unique(origin[value[read & ~alone]])
    chosen = read & alone & ~np.isin(origin[value], together)
    reader = np.full(passes.length + 1, -1)
    reader[position[chosen]] = origin[value[chosen]]
    returned = np.flatnonzero(reader[values.producer] >= 0)
    return reader[values.producer[returned]], returned


def _idle(recording: Recording, idle: Mask, whole: bool = False) -> IdleArguments:
    """Collect the large idle rows of mostly idle arguments, or if `whole`, all rows. Small arguments are ignored."""
    size = recording.allocations.size
    names, found = [], [np.empty(0, dtype=np.int64)]
    parts = list(argument_parts(recording))
    ambiguous = {name for name, count in Counter(part.name for part in parts).items() if count > 1}
    for share in parts:
        if share.name in ambiguous:
            continue
        large = share.rows[SMALL_SHARE * size[share.rows] >= size[share.rows].max(initial=0)]
        rows = large[idle[large]]
        idle_bytes = int(size[rows].sum())
        if 2 * idle_bytes > int(size[share.rows].sum()) and is_worthwhile(recording, idle_bytes):
            names.append(share.name)
            found.append(share.rows if whole else rows)
    return IdleArguments(names, np.concatenate(found))


LATE_FREE_CODE = """\
prepared = jax.block_until_ready(jax.jit(prepare)({names}))  # the code of {function} that reads {names}
jax.tree.map(lambda x: x.delete(), ({names}))  # then call {function} with `prepared` instead"""


def advise_late_free(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all arguments that are idle at the peak after their last use."""
    passes = program_passes(recording)
    idle = idle_after_use(recording, passes) if passes is not None else None
    saved = saving(recording, *_in_two_programs(recording, passes, idle)) if passes and idle and idle.names else None
    if idle is None or saved is None:
        return
    size, names = int(recording.allocations.size[idle.rows].sum()), idle.names_text
    yield Advice(
        kind=AdviceKind.LATE_FREE,
        title=f"Free {names} before the peak",
        sentence=f"{bytes_text(size)} of {names} are no longer needed at the peak. Freeing {idle.agree('it', 'them')} "
        f"after the last use, instead of at the end of {function_name(recording)}, {saved.effect}.",
        change=LATE_FREE_CODE.format(names=names, function=function_name(recording)),
        rows=sort_by_size(recording, idle.rows),
        bytes=size,
        saving=saved,
    )


def _in_two_programs(recording: Recording, passes: ProgramPasses, idle: IdleArguments) -> tuple[Change, Change]:
    """Return the change if a first program reads the arguments, and a second one gets what the first returns.

    Memory of arguments that a result reuses stays. In the second case, the second program also has a copy of what it
    gets, such as a padded one.
    """
    table, own, rows, row = recording.allocations, lifetimes(recording), idle.rows, row_of_value(recording)
    alone = ~np.isin(table.region[rows], table.region[np.setdiff1d(np.arange(len(table)), rows)])
    regions, gone = table.region[rows[alone]].astype(np.int64), rows[alone]
    without = shrink_regions(recording, regions, 0, gone)
    argument, returned = separate_reads(passes)
    chosen = np.isin(row[argument], gone)
    argument, returned = argument[chosen], returned[chosen]
    kept, elements = row[returned].astype(np.int64), passes.values.elements
    # A result in another memory is an argument in this one, about as large as its share of the elements.
    estimated = own.bytes[row[argument]] * elements[returned] // np.maximum(elements[argument], 1)
    size = np.where(kept >= 0, own.bytes[kept], estimated)
    first, last = np.full(len(kept), -1), np.full(len(kept), recording.length)
    before = new_memory(first, np.where(kept >= 0, own.start[kept], last), size)
    after = new_memory(np.where(kept >= 0, own.end[kept], last), last, size)
    return combine(without, before, after), combine(without, new_memory(first, last, size))


ACCELERATORS = (Backend.TPU, Backend.GPU)
OFFLOAD_CODE = """\
def shardings(tree, kind):
    return jax.tree.map(lambda x: x.sharding.with_memory_kind(kind), tree)

on_device, on_host = shardings(opt_state, 'device'), shardings(opt_state, 'pinned_host')
opt_state = jax.device_put(opt_state, on_host){comment}
gradients = jax.jit(jax.value_and_grad(loss_fn))

@functools.partial(jax.jit, donate_argnums=(0, 1))
def update(params, opt_state, grads):
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state

def {function}(params, opt_state, batch):
    loss, grads = jax.block_until_ready(gradients(params, batch))  # its temporary memory is free after this line
    params, opt_state = update(params, jax.device_put(opt_state, on_device), grads)
    return params, jax.block_until_ready(jax.device_put(opt_state, on_host)), loss"""


def offload_code(names: Sequence[str], function: str) -> str:
    """Return code that offloads these arguments, or parts of arguments, which are the optimizer's state."""
    comment = "" if list(names) == ["opt_state"] else f"  # opt_state is {', '.join(names)}"
    return OFFLOAD_CODE.format(function=function, comment=comment)


def advise_offload(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all such state: it is one change, and the saving of each array depends on the others."""
    passes = program_passes(recording)
    if passes is None or not passes.within(Pass.BACKWARD).any() or recording.backend not in ACCELERATORS:
        return
    idle = state_idle_before_peak(recording, passes)
    saved = _offload_saving(recording, idle) if idle.names else None
    if saved is None:
        return
    size, names, them = int(recording.allocations.size[idle.rows].sum()), idle.names_text, idle.agree("it", "them")
    yield Advice(
        kind=AdviceKind.OFFLOAD,
        title=f"Offload {names} to the host",
        sentence=f"{bytes_text(size)} of {names} are first read after the peak"
        f"{results_text(recording, idle.rows, with_updated(recording, idle.rows))}. Computing the gradients in one "
        f"program and the update in another, and keeping {them} on the host except for the update, {saved.effect}. "
        "The cost is the transfer in both directions.",
        change=offload_code(idle.names, function_name(recording)),
        rows=sort_by_size(recording, idle.rows),
        bytes=size,
        saving=saved,
        work=Work(host_bytes=2.0 * size),
    )


def _offload_saving(recording: Recording, idle: IdleArguments) -> Saving | None:
    """Return the saving by two programs: the first returns the gradients, the second takes them and the state.

    Gradients cost at most their size: compilers may place temporary memory in results that are not written yet, though
    the compiler for TPUs rarely does so.
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
    gone = shrink_regions(recording, regions, 0, both)
    # Gradients replace new weights that have memory of their own.
    gradients = int(table.size[argument[trained & (pairs.donated != 0)]].sum())
    temporary = np.flatnonzero((role == Role.GRADIENT) & (table.charge > 0))
    apart = combine(gone, remove_rows(recording, temporary))
    before, update = peak(recording).bytes, 2 * weights + int(table.size[idle.rows].sum())
    most = before - max(peak_after(recording, apart).bytes, update)
    with_gradients = combine(apart, always(recording, gradients))
    least = before - max(peak_after(recording, with_gradients).bytes, update)
    expected = least if recording.backend is Backend.TPU else (least + most) // 2
    return promise(recording, expected, least, most, replay=with_gradients, floor=update)
