"""The times of a program's instructions, estimated by a roofline or measured by a profiler, and of what it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.graph import dataflow_graph, shared_memory
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.compiler_recomputation import repeats
from tb_memplugin.analysis.step_time import StepTime, step_time
from tb_memplugin.analysis.usage.live_bytes import usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import F64, I64, concatenate_ranges, connected_components
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Costs, InstructionTimes, Program
from tb_memplugin.model.recording import Recording

CONTROL_FLOW = {"while", "call", "conditional"}
NOT_OF_KERNELS = re.compile(r"\W")
NEAR_PEAK = 0.99  # of the bytes at the peak: how long memory is as full as that


@dataclass(frozen=True, slots=True, eq=False)
class ProgramTimes:
    """The times of one run of a program, in seconds per position of its schedule, all iterations of loops included."""

    estimated: StepTime | None  # None: the speed of the device is not known
    seconds: F64  # the measured times, with those of other kernels shared out among the rest; else the estimated ones
    measured: F64 | None  # NaN where the profile has no run of the instruction; None: no instruction was measured
    others: float  # measured, of kernels that cannot be assigned to an instruction, such as those of libraries
    executions: int  # of the program, on all devices together
    devices: tuple[str, ...]
    imbalance: F64 | None  # the mean time on the slowest device, divided by that on the fastest

    @property
    def is_measured(self) -> bool:
        return self.measured is not None

    @property
    def total_measured(self) -> float | None:
        """The measured time of one run; None without any."""
        return None if self.measured is None else float(np.nansum(self.measured)) + self.others

    @property
    def clock(self) -> F64:
        """The time at which each position begins, and after the last one, the end: one more than positions."""
        begins: F64 = np.r_[0.0, np.cumsum(self.seconds)]
        return begins


@memoize
def estimated_time(recording: Recording) -> StepTime | None:
    """Return the estimated times of a program; None without the speed of its device, or where it is damaged."""
    program = recording.program
    if program is None or program.costs is None or program.speed is None:
        return None
    try:
        return step_time(program.costs(), program.speed)
    except InputError:
        return None


@memoize
def program_times(recording: Recording) -> ProgramTimes | None:
    """Return the times of a program; None where nothing is known of them. InputError where its file is damaged."""
    program = recording.program
    if program is None or program.costs is None:
        return None
    costs, estimated = program.costs(), estimated_time(recording)
    ran = program.measured() if program.measured is not None else None
    if ran is None or not len(ran.name):
        return ProgramTimes(estimated, estimated.seconds, None, 0.0, 0, (), None) if estimated is not None else None
    return _measured(program, costs, ran, estimated)


def _measured(program: Program, costs: Costs, ran: InstructionTimes, estimated: StepTime | None) -> ProgramTimes:
    rows = {name: row for row, name in enumerate(ran.name.tolist())}
    # Per instruction: its row, -1 for none. Names of kernels have `_` in place of dots.
    row = program.name.map(lambda name: rows.get(name, rows.get(NOT_OF_KERNELS.sub("_", name), -1)), -1, np.int64)
    is_caller = program.op.isin(CONTROL_FLOW)  # their times are those of what they call
    unmatched = np.setdiff1d(np.arange(len(ran.name)), row)
    row[is_caller] = -1
    known = row >= 0
    executions = _executions(ran.runs[row[known]], costs.times[known])
    shared = np.bincount(row[known], minlength=len(ran.name))  # positions of one name, which a damaged file may have
    measured, imbalance = np.full((2, len(row)), np.nan)
    measured[known] = ran.seconds[row[known]] / shared[row[known]] / executions
    imbalance[known] = ran.slowest[row[known]] / np.maximum(ran.fastest[row[known]], 1e-12)
    # The time of other kernels is shared out among the instructions that were not measured.
    weights = np.where(known, 0.0, costs.nbytes * costs.times if estimated is None else estimated.seconds)
    others = float(ran.seconds[unmatched].sum()) / executions if weights.any() else 0.0
    seconds = np.nan_to_num(measured) + weights * (others / max(float(weights.sum()), 1e-300))
    several = len(ran.devices) > 1
    return ProgramTimes(estimated, seconds, measured, others, executions, ran.devices, imbalance if several else None)


def _executions(runs: I64, times: F64) -> int:
    """Return how often a program ran: most instructions outside of loops ran once each time."""
    once = runs[times == 1] if (times == 1).any() else np.round(runs / times)
    counts, frequency = np.unique(once, return_counts=True)
    return max(int(counts[np.argmax(frequency)]), 1) if len(counts) else 1


COLLECTIVES = ("all-", "reduce-scatter", "collective-", "ragged-all-")  # beginnings of opcodes
# Last parts of JAX's names of operations that only move slices, as from and to the stacks of a scan.
MOVES = ("dynamic_update_slice", "dynamic_slice", "squeeze", "dynamic_update_index_in_dim")
RECOMPUTED = b"rematted_computation"  # in names of what jax.checkpoint computes again


def kinds_of_work(program: Program, seconds: F64) -> dict[str, float]:
    """Return the seconds of kinds of work besides the computation itself, the most first."""
    is_move = program.op.where(lambda opcode: opcode.startswith("copy"))
    is_move |= program.op_name.where(lambda name: name.rpartition("/")[2] in MOVES)
    kinds = {
        "recomputation": program.op_name.contains(RECOMPUTED) | repeats(program.name),
        "collectives": program.op.where(lambda opcode: opcode.startswith(COLLECTIVES)),
        "copies": is_move,
    }
    found = {name: float(seconds[which].sum()) for name, which in kinds.items()}
    return {name: found[name] for name in sorted(found, key=found.__getitem__, reverse=True) if found[name] > 0}


class HeldMemory(NamedTuple):
    """The time for which memory is held during one run of a program. Arrays have an entry for each row."""

    near_peak: float  # seconds in which at least 99 % of the peak is in use
    by_role: dict[Role, float]  # byte-seconds
    byte_seconds: F64
    unused: F64  # the longest time, in seconds, in which the row is held and nothing reads or writes it


@memoize
def held_memory(recording: Recording) -> HeldMemory | None:
    """Return how long each row of a program is held; None where the times of its instructions are not known."""
    times = program_times(recording)
    if times is None:
        return None
    rows, clock, live = recording.allocations, times.clock, usage(recording).live
    begin, end = (np.clip(column, 0, recording.length) for column in (rows.start, rows.end))
    held = rows.charge * (clock[end] - clock[begin])
    found = np.bincount(roles(recording), held, len(Role))
    return HeldMemory(
        near_peak=float(times.seconds[live >= NEAR_PEAK * live.max(initial=0)].sum()),
        by_role={Role(role): float(found[role]) for role in np.argsort(-found, kind="stable").tolist() if found[role]},
        byte_seconds=held,
        unused=_longest_unused(recording, clock),
    )


def _longest_unused(recording: Recording, clock: F64) -> F64:
    """Return the longest time in which each row is held without a use, before the first and after the last included.

    A loop uses what one of its instructions uses, in each iteration.
    """
    rows, n = recording.allocations, recording.length
    graph = dataflow_graph(recording)
    found = np.zeros(len(rows))
    if graph is None:
        return found
    values = graph.values
    same = connected_components(len(values), *shared_memory(values))  # equal numbers: values that share memory
    value, at = np.r_[values.used_value, np.arange(len(values))], np.r_[values.use, values.producer]
    value, at = value[at >= 0], at[at >= 0]
    keys = np.unique(same[value].astype(np.int64) * (n + 1) + at)
    which = np.flatnonzero((rows.charge > 0) & (graph.value >= 0))
    memory = same[graph.value[which]].astype(np.int64) * (n + 1)
    begin, end = (np.clip(column[which], 0, n) for column in (rows.start, rows.end))
    first, last = (np.searchsorted(keys, memory + edge) for edge in (begin, end))
    count = last - first
    owner = np.repeat(np.arange(len(which)), count)
    used = keys[concatenate_ranges(first, count)] - memory[owner]
    lowest, highest = _of_loops(graph.program, n)
    start, stop = np.maximum(lowest[used], begin[owner]), np.minimum(highest[used] + 1, end[owner])
    # Each row has its uses in order, after where it begins and before where it ends.
    after = np.cumsum(count)
    free_from = np.insert(clock[stop], after - count, clock[begin])
    free_until = np.insert(clock[start], after, clock[end])
    np.maximum.at(found, np.repeat(which, count + 1), free_until - free_from)
    return found


def _of_loops(program: Program, length: int) -> tuple[I64, I64]:
    """Return the first and last position of the outermost loop around each position; itself outside of loops."""
    at = np.arange(length)
    outside = np.flatnonzero(program.computation.isin({program.entry_computation}))
    after = np.searchsorted(outside, at)  # of what an instruction calls, it is the last
    before = np.r_[-1, outside][after]
    caller = np.r_[outside, length - 1][after]
    is_loop = program.op.isin({"while"})[caller] & (caller != at)
    return np.where(is_loop, before + 1, at), np.where(is_loop, caller, at)
