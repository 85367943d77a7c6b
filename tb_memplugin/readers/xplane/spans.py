"""Events of a host's threads, as columns, and the named intervals among them: steps, calls, user annotations.

Executions of programs on TPU cores are intervals, too.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32, I64, Mask, marked
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.xplane.all_events import every
from tb_memplugin.readers.xplane.planes import Plane

STEP_NUMBER, GROUP = "step_num", "group_id"  # XProf groups the events of a step
# Producer type and id, consumer type and id: a producer on one thread and its consumer on another have equal pairs.
LINKS = ("_pt", "_p", "_ct", "_c")
RUN, DRIVER_CALL = "run_id", "correlation_id"  # an execution of a program, a call of the accelerator's driver
STAT_COLUMNS = {name: number for number, name in enumerate((*LINKS, STEP_NUMBER, GROUP, RUN, DRIVER_CALL))}
PYTHON_FRAME = re.compile(r"\$(.+):(\d{1,18}) (.+)", re.DOTALL)
# A call of a jitted function; since JAX 0.11, that of a function compiled ahead of time is `PjitFunction(jit(train))`.
JITTED = re.compile(r"PjitFunction\((?P<ahead>jit\()?(?P<function>.+?)(?(ahead)\))\)", re.DOTALL)


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
        # The last entry is for kind -1.
        return marked(len(self.names) + 1, np.fromiter(kinds, dtype=np.int64))[self.kind]

    def having_any(self, *stats: str) -> Mask:
        """Return a mask of the events that have any of these stats."""
        return marked(len(self.kind), np.concatenate([self.stats[name][0] for name in stats]))


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
    line = np.repeat(np.arange(len(events.line_events)), events.line_events)
    on_python_thread = marked(len(events.line_events), line[transparent | jax_runs])[line]
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


def _enclosing(events: HostEvents, inner: I64) -> Mask:
    """Return a mask of the events that enclose any of `inner`, at any depth."""
    around = np.zeros(len(events.kind) + 1, dtype=bool)  # the last entry is for parent -1
    while len(inner):
        above = marked(len(around), events.parent[inner])
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


STEP_NUMBER_MASK = 0x7FFFFFFF  # the low 31 bits of a step's number


@dataclass(frozen=True)
class _Spans:
    """Spans of one kind. Spans with equal `label` have the same name."""

    kind: SpanKind
    start_ps: I64
    stop_ps: I64
    label: I64
    names: dict[int, str]


def host_spans(events: HostEvents) -> NamedSpans:
    """Find the steps, executions and annotations of a host, ordered by start."""
    jitted = {i: match["function"] for i, name in enumerate(events.names) if (match := JITTED.fullmatch(name))}
    is_call = events.of_kinds(jitted)
    calls, annotations = np.flatnonzero(is_call), np.flatnonzero(find_annotations(events, is_call))
    # Without calls directly nested in a call of the same function: JAX marks the call, and again its compiled part.
    above = events.parent[calls]
    outermost = calls[(above < 0) | (events.kind[above] != events.kind[calls])]
    executions = _of_events(SpanKind.EXECUTION, events, outermost, jitted)
    return _merge(
        [
            _steps(events),
            executions,
            _of_events(SpanKind.ANNOTATION, events, annotations, dict(enumerate(events.names))),
        ]
    )


def _steps(events: HostEvents) -> _Spans:
    """Return the events with a step number; without any, the time of each group of events is a step."""
    numbered, number = events.stats[STEP_NUMBER]
    if not len(numbered):
        return _groups(events)
    label = (events.kind[numbered].astype(np.int64) << 32) + (number & STEP_NUMBER_MASK)
    names = {
        code: f"{events.names[code >> 32] if code >= 0 else ''} {code & STEP_NUMBER_MASK}".lstrip()
        for code in np.unique(label).tolist()
    }
    return _Spans(SpanKind.STEP, events.start_ps[numbered], events.stop_ps[numbered], label, names)


def _groups(events: HostEvents) -> _Spans:
    grouped, number = events.stats[GROUP]
    groups, which = np.unique(number, return_inverse=True)
    start, stop = np.full(len(groups), 2**63 - 1), np.full(len(groups), -(2**63))
    np.minimum.at(start, which, events.start_ps[grouped])
    np.maximum.at(stop, which, events.stop_ps[grouped])
    # A group within another group's time is a part of its work, such as reading input, not a step of its own.
    order = np.lexsort((-stop, start))
    reach = np.maximum.accumulate(stop[order])
    outermost = order[np.r_[True, stop[order][1:] > reach[:-1]]] if len(order) else order
    names = {code: f"step {code}" for code in groups[outermost].tolist()}
    return _Spans(SpanKind.STEP, start[outermost], stop[outermost], groups[outermost], names)


def _of_events(kind: SpanKind, events: HostEvents, which: npt.NDArray[np.integer], names: dict[int, str]) -> _Spans:
    label = events.kind[which].astype(np.int64)
    return _Spans(kind, events.start_ps[which], events.stop_ps[which], label, names)


def _merge(span_lists: list[_Spans]) -> NamedSpans:
    """Merge the spans in order of start, and drop those of zero length."""
    names: dict[str, int] = {}
    codes: list[I64] = []
    for spans in span_lists:
        labels, which = np.unique(spans.label, return_inverse=True)
        numbers = [names.setdefault(spans.names[label], len(names)) for label in labels.tolist()]
        codes.append(np.array(numbers, dtype=np.int64)[which.ravel()])
    start, stop = np.concatenate([s.start_ps for s in span_lists]), np.concatenate([s.stop_ps for s in span_lists])
    kind = np.repeat([int(s.kind) for s in span_lists], [len(s.start_ps) for s in span_lists])
    nonempty = np.flatnonzero(stop > start)
    order = nonempty[np.argsort(start[nonempty], kind="stable")]
    text = Text(np.concatenate(codes)[order].astype(np.int32), Strings.of(list(names)))
    return NamedSpans(text, kind[order].astype(np.uint8), start[order] // 1000, stop[order] // 1000)


CORE_PLANE = re.compile(r"/device:TPU:(\d+)")
MODULES_LINE = "XLA Modules"


def tpu_core_planes(planes: Sequence[Plane]) -> dict[str, Plane]:
    """Return the planes of TPU cores by the name of the core's memory, "TPU core 0"."""
    found = ((CORE_PLANE.fullmatch(plane.name), plane) for plane in planes)
    return {f"TPU core {match[1]}": plane for match, plane in found if match}


def module_spans(plane: Plane, start_ns: int) -> NamedSpans:
    """Return the executions of compiled programs, named by program key, in nanoseconds since `start_ns` of the profile.

    Only the "XLA Modules" line is read, as the other lines are most of the plane. Raises ValueError on a damaged plane.
    """
    found = every(plane.data, plane.event_kinds, {}, plane.lines_named(MODULES_LINE), plane.budget)
    begin = np.repeat(found["line_timestamp_ns"] - start_ns, found["line_events"])
    start = begin + found["offset_ps"] // 1000
    stop = begin + (found["offset_ps"] + found["duration_ps"]) // 1000
    order = np.flatnonzero(stop > start)
    order = order[np.argsort(start[order], kind="stable")]
    used, code = np.unique(found["kind"][order], return_inverse=True)  # most names of the plane are of instructions
    texts = list(plane.event_names.values())
    return NamedSpans(
        Text(code.ravel().astype(np.int32), Strings.of([texts[kind] if kind >= 0 else "" for kind in used.tolist()])),
        np.full(len(order), int(SpanKind.EXECUTION), dtype=np.uint8),
        start[order],
        stop[order],
    )


def merge_spans(host: NamedSpans, modules: NamedSpans) -> NamedSpans:
    """Merge a device's executions into the host's spans, whose calls, being only launches, become annotations."""
    if not len(modules):
        return host
    host_kind = np.where(host.kind == SpanKind.EXECUTION, int(SpanKind.ANNOTATION), host.kind)
    start = np.r_[host.start_ns, modules.start_ns]
    order = np.argsort(start, kind="stable")
    strings = Strings.joined(host.name.strings, modules.name.strings)
    codes = np.r_[host.name.codes, modules.name.codes + len(host.name.strings)].astype(np.int32)
    return NamedSpans(
        Text(codes[order], strings),
        np.r_[host_kind, modules.kind].astype(np.uint8)[order],
        start[order],
        np.r_[host.end_ns, modules.end_ns][order],
    )
