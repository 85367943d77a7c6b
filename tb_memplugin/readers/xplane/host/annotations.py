"""Which events of a host's threads its user put there: those of jax.profiler.TraceAnnotation and its like."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.readers.xplane.host.events import DRIVER_CALL, JITTED, LINKS, RUN, STEP_NUMBER, HostEvents, Mask

# What JAX annotates itself, now and in earlier versions, as a user would, and what else only Python's threads do.
OF_PYTHON = {
    "trace_to_jaxpr_dynamic", "trace_to_jaxpr_dynamic2", "trace_to_jaxpr_final", "trace_to_jaxpr_final2",
    "trace_to_jaxpr_nounits", "lower_sharding_computation", "lower_mesh_computation", "lower_parallel_callable",
    "lower_xla_callable", "backend_compile", "backend_compile_and_load", "shard_args", "replicate",
    "ExecuteReplicated.__call__", "np.asarray(jax.Array)", "ArrayImpl.copy_to_host_async", "pickle_util.dumps",
    "pickle_util.loads", "ParseArguments", "DevicePut", "DevicePutWithSharding", "cpp_pjit_shard_arg_fallback",
    "batched_copy_array_to_devices_with_sharding", "ndarray pmap ShardArg",
}  # fmt: skip
# What the runtime does on whatever thread lets go of an array or asks for one, and so on Python's too.
OF_ANY = {
    "Wait for usage holds", "Wait for donation holds", "H2D Dispatch", "D2H Dispatch", "MemoryAllocation",
    "MemoryDeallocation",
}  # fmt: skip
QUALIFIED = "::"  # in the names that C++ gives


def annotated(events: HostEvents, calls: Mask) -> Mask:
    """Which events are annotations. `calls`: those that call compiled programs.

    A profile does not tell annotations from the runtime's own events, so they are found by where they are: on a thread
    that Python runs on, inside of nothing but Python frames, steps and annotations. What is there and around a call of
    a compiled program is one. So is what is around anything else or nothing, if its name is not of the form that C++
    gives, and no event of that name is the runtime's anywhere in the profile: in a call, or on a thread of its own.
    What JAX is known to put there itself is none.

    One that nobody wrote misleads more than one that is missed. So where JAX does not run there are none: TensorFlow
    names its own events after its user's operations.
    """
    frames = {kind for kind, name in enumerate(events.names) if name.startswith("$")}
    by_python = {kind for kind, name in enumerate(events.names) if name in OF_PYTHON}
    by_jax = by_python | {kind for kind, name in enumerate(events.names) if name in OF_ANY or JITTED.fullmatch(name)}
    jax_runs = events.of_kinds(by_python) | calls
    if not jax_runs.any():
        return jax_runs
    through = events.of_kinds(frames) | events.having(STEP_NUMBER)
    on_python = _on_lines_of(events, through | jax_runs)
    named = set(range(len(events.names))) - frames - by_jax
    possible = events.of_kinds(named) & ~through & ~events.having(*LINKS, RUN, DRIVER_CALL)
    around = _around(events, np.flatnonzero(calls))
    runtime = {kind for kind in named if QUALIFIED in events.names[kind]}
    runtime |= set(np.unique(events.kind[possible & ~on_python]).tolist())
    while True:
        found = possible & on_python & (around | ~events.of_kinds(runtime))
        inside = _inside(events, found, ~(through | found))
        more = set(np.unique(events.kind[inside]).tolist()) - runtime
        if not more:
            found[inside] = False
            return found
        runtime |= more


def _on_lines_of(events: HostEvents, marks: Mask) -> Mask:
    """Which events are on a line that has a mark."""
    line = np.repeat(np.arange(len(events.line_events)), events.line_events)
    marked = np.zeros(len(events.line_events), dtype=bool)
    marked[line[marks]] = True
    on: Mask = marked[line]
    return on


def _around(events: HostEvents, inner: I64) -> Mask:
    """Which events enclose any of these."""
    around = np.zeros(len(events.kind) + 1, dtype=bool)  # the last is for -1
    while len(inner):
        above = np.zeros_like(around)
        above[events.parent[inner]] = True
        above[-1] = False
        inner = np.flatnonzero(above & ~around)
        around |= above
    return around[:-1]


def _inside(events: HostEvents, which: Mask, others: Mask) -> I64:
    """Which of the chosen events are inside one of the others, at any depth."""
    chosen = np.flatnonzero(which)
    found = [chosen[:0]]
    above = events.parent[chosen]
    while len(chosen):
        chosen, above = chosen[above >= 0], above[above >= 0]
        enclosed = others[above]
        found.append(chosen[enclosed])
        chosen, above = chosen[~enclosed], events.parent[above[~enclosed]]
    return np.concatenate(found)
