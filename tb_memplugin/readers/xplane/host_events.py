"""Events of a host's threads, as columns, and the user annotations among them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import I32, I64, Mask

STEP_NUMBER, GROUP = "step_num", "group_id"  # XProf groups the events of a step
# Producer type and id, consumer type and id: a producer on one thread and its consumer on another have equal pairs.
LINKS = ("_pt", "_p", "_ct", "_c")
RUN, DRIVER_CALL = "run_id", "correlation_id"  # an execution of a program, a call of the accelerator's driver
PYTHON_FRAME = re.compile(r"\$(.+):(\d{1,18}) (.+)", re.DOTALL)
JITTED = re.compile(r"PjitFunction\((.+)\)", re.DOTALL)


@dataclass(frozen=True)
class HostEvents:
    """All events of a host, line by line. `kind` indexes `names`; -1 is an event without a name."""

    names: list[str]
    kind: I32
    start_ps: I64
    stop_ps: I64
    parent: I32  # the enclosing event of the same line; -1 none
    line_events: I64  # events per line, that is, per thread
    stats: dict[str, tuple[I32, I64]]  # by stat name: the events that have the stat, and its values

    def of_kinds(self, kinds: Iterable[int]) -> Mask:
        """Return a mask of the events of these kinds."""
        flags = np.zeros(len(self.names) + 1, dtype=bool)  # the last entry is for kind -1
        flags[list(kinds)] = True
        mask: Mask = flags[self.kind]
        return mask

    def having_any(self, *stats: str) -> Mask:
        """Return a mask of the events that have any of these stats."""
        mask = np.zeros(len(self.kind), dtype=bool)
        for name in stats:
            mask[self.stats[name][0]] = True
        return mask


# JAX's own annotations, in this and earlier versions, and other events of Python threads only.
PYTHON_THREAD_EVENTS = {
    "trace_to_jaxpr_dynamic", "trace_to_jaxpr_dynamic2", "trace_to_jaxpr_final", "trace_to_jaxpr_final2",
    "trace_to_jaxpr_nounits", "lower_sharding_computation", "lower_mesh_computation", "lower_parallel_callable",
    "lower_xla_callable", "backend_compile", "backend_compile_and_load", "shard_args", "replicate",
    "ExecuteReplicated.__call__", "np.asarray(jax.Array)", "ArrayImpl.copy_to_host_async", "pickle_util.dumps",
    "pickle_util.loads", "ParseArguments", "DevicePut", "DevicePutWithSharding", "cpp_pjit_shard_arg_fallback",
    "batched_copy_array_to_devices_with_sharding", "ndarray pmap ShardArg",
}  # fmt: skip
# Events of the runtime on any thread that allocates or frees an array, Python threads included.
ANY_THREAD_EVENTS = {
    "Wait for usage holds", "Wait for donation holds", "H2D Dispatch", "D2H Dispatch", "MemoryAllocation",
    "MemoryDeallocation",
}  # fmt: skip
CPP_SCOPE = "::"  # in C++ names


def find_annotations(events: HostEvents, calls: Mask) -> Mask:
    """Return a mask of the annotations. `calls` is a mask of the calls of compiled programs.

    A profile does not distinguish annotations from the runtime's own events, so their position decides. Candidates are
    on a Python thread, nested only in Python frames, steps and annotations. A candidate around a call of a compiled
    program is an annotation. Any other candidate is one if its name has no C++ scope and no event of that name belongs
    to the runtime anywhere in the profile, that is, lies within a call or on another thread. JAX's own known
    annotations are excluded.

    A false annotation misleads more than a missing one. So a profile without JAX has none: TensorFlow names its own
    events after its user's operations.
    """
    frames = {kind for kind, name in enumerate(events.names) if name.startswith("$")}
    python_events = {kind for kind, name in enumerate(events.names) if name in PYTHON_THREAD_EVENTS}
    jax_events = python_events | {
        kind for kind, name in enumerate(events.names) if name in ANY_THREAD_EVENTS or JITTED.fullmatch(name)
    }
    jax_runs = events.of_kinds(python_events) | calls
    if not jax_runs.any():
        return jax_runs
    transparent = events.of_kinds(frames) | events.having_any(STEP_NUMBER)
    on_python_thread = _on_same_lines(events, transparent | jax_runs)
    other_names = set(range(len(events.names))) - frames - jax_events
    candidates = events.of_kinds(other_names) & ~transparent & ~events.having_any(*LINKS, RUN, DRIVER_CALL)
    encloses_call = _enclosing(events, np.flatnonzero(calls))
    runtime = {kind for kind in other_names if CPP_SCOPE in events.names[kind]}
    runtime |= set(np.unique(events.kind[candidates & ~on_python_thread]).tolist())
    while True:
        found = candidates & on_python_thread & (encloses_call | ~events.of_kinds(runtime))
        inside = _inside(events, found, ~(transparent | found))
        more = set(np.unique(events.kind[inside]).tolist()) - runtime
        if not more:
            found[inside] = False
            return found
        runtime |= more


def _on_same_lines(events: HostEvents, marked: Mask) -> Mask:
    """Return a mask of the events on lines with a marked event."""
    line = np.repeat(np.arange(len(events.line_events)), events.line_events)
    has_mark = np.zeros(len(events.line_events), dtype=bool)
    has_mark[line[marked]] = True
    on_line: Mask = has_mark[line]
    return on_line


def _enclosing(events: HostEvents, inner: I64) -> Mask:
    """Return a mask of the events that enclose any of `inner`, at any depth."""
    around = np.zeros(len(events.kind) + 1, dtype=bool)  # the last entry is for parent -1
    while len(inner):
        above = np.zeros_like(around)
        above[events.parent[inner]] = True
        above[-1] = False
        inner = np.flatnonzero(above & ~around)
        around |= above
    return around[:-1]


def _inside(events: HostEvents, which: Mask, others: Mask) -> I64:
    """Return the events of mask `which` that lie within an event of mask `others`, at any depth."""
    chosen = np.flatnonzero(which)
    found = [chosen[:0]]
    above = events.parent[chosen]
    while len(chosen):
        chosen, above = chosen[above >= 0], above[above >= 0]
        enclosed = others[above]
        found.append(chosen[enclosed])
        chosen, above = chosen[~enclosed], events.parent[above[~enclosed]]
    return np.concatenate(found)
