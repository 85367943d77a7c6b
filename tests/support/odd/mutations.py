"""Mutations of recordings within what readers guarantee (invariants.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from support.odd.resized import Rows, no_text, with_length, with_rows, without_regions, without_stacks, without_values

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.dataflow import DataflowValues, Derivations, Products
from tb_memplugin.model.kinds import Axis, RegionKind, Role, SpanKind
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Strings, Text

Generator = np.random.Generator
Mutation = Callable[[Recording, Generator], Recording]
MAX_SIZE, MAX_TOTAL = 1 << 50, 1 << 62
MUTATIONS: dict[str, Mutation] = {}
TEXTS = (
    b"", b"\xff\xfe", b"\xed\xa0\x80", b"\0", b"\n", b"\x1b[31m", b"<script>", b"=1+1", b"NaN", b"-1", b"/", b"//",
    b"a/" * 300, b"(" * 300, b"[" * 300, b"jit(f)/", b"jit(", b"transpose(jvp())/x", b"checkpoint/rematted_computation",
    b"while/body/closed_call", b"f32[]", b"f32[0]{0}", b"f32[,]", b"f32[999999999999999,999999999999999]",
    b"bf16[1,2,3]{2,1,0:T(8,128)}", b"(f32[2], s32[])", b"params['a'][0].b", b"args[0]", b"layer_0", b"layer_99999999",
    b"layers/0/1/2", b"copy-start", b"fusion", b"custom-call", b"parameter", b"%", b"%s{}", b"x" * 5000,
)  # fmt: skip


def mutation(function: Mutation) -> Mutation:
    MUTATIONS[function.__name__] = function
    return function


def mutate(recording: Recording, names: list[str], seed: int) -> Recording:
    """Return the recording after these mutations, each with the same seed."""
    for name in names:
        recording = MUTATIONS[name](recording, np.random.default_rng(seed))
    return recording


def _integers(rng: Generator, low: int, high: int, like: Any) -> Any:
    """Return a column of numbers from `low` to `high`, often one of the two."""
    numbers = rng.integers(low, high + 1, len(like), dtype=np.int64)
    at = rng.integers(0, 4, len(like))
    return np.select([at == 0, at == 1], [low, high], numbers).astype(like.dtype)


def _of_rows(recording: Recording, **columns: Any) -> Recording:
    return replace(recording, allocations=replace(recording.allocations, **columns))


MUTATIONS |= {
    "no_positions": lambda r, _: with_length(r, 0),
    "one_position": lambda r, _: with_length(r, 1),
    "two_positions": lambda r, _: with_length(r, 2),
    "fewer_positions": lambda r, rng: with_length(r, int(rng.integers(0, r.length + 1))),
    "no_rows": lambda r, _: with_rows(r, np.arange(0)),
    "one_row": lambda r, rng: with_rows(r, _some(rng, r, 1)),
    "two_rows": lambda r, rng: with_rows(r, _some(rng, r, 2)),
    "half_the_rows": lambda r, rng: with_rows(r, _some(rng, r, len(r.allocations) // 2)),
    "no_regions": lambda r, _: without_regions(r),
    "no_stacks": lambda r, _: without_stacks(r),
    "no_values": lambda r, _: without_values(r),
}


def _some(rng: Generator, recording: Recording, most: int) -> Rows:
    count = len(recording.allocations)
    return np.sort(rng.permutation(count)[: min(most, count)])


@mutation
def lifetimes(r: Recording, rng: Generator) -> Recording:
    rows = r.allocations
    times = [_integers(rng, -1, r.length, rows.start) for _ in range(4)]
    start, end = np.minimum(times[0], times[1]), np.maximum(np.maximum(times[0], times[1]), 0)
    return _of_rows(r, start=start, end=end, defined=times[2], last_used=times[3])


@mutation
def dead(r: Recording, rng: Generator) -> Recording:
    at = _integers(rng, 0, r.length, r.allocations.start)
    return _of_rows(r, start=at, end=at)


@mutation
def dead_before(r: Recording, rng: Generator) -> Recording:
    before = np.full(len(r.allocations), -1)
    return _of_rows(r, start=before, end=before + 1, defined=before, last_used=before)


@mutation
def born_after(r: Recording, rng: Generator) -> Recording:
    after = np.full(len(r.allocations), r.length)
    return _of_rows(r, start=after, end=after, defined=after, last_used=after)


@mutation
def always_live(r: Recording, rng: Generator) -> Recording:
    rows = r.allocations
    return _of_rows(r, start=np.full(len(rows), -1), end=np.full(len(rows), r.length))


@mutation
def no_bytes(r: Recording, rng: Generator) -> Recording:
    zeros = np.zeros(len(r.allocations), dtype=np.int64)
    return _of_rows(r, size=zeros, requested=zeros, charge=zeros)


@mutation
def no_charge(r: Recording, rng: Generator) -> Recording:
    return _of_rows(r, charge=np.zeros(len(r.allocations), dtype=np.int64))


@mutation
def sizes(r: Recording, rng: Generator) -> Recording:
    most = min(MAX_SIZE, MAX_TOTAL // max(len(r.allocations), 1))
    names = ("size", "requested", "charge")
    return _of_rows(r, **{name: _integers(rng, 0, most, r.allocations.size) for name in names})


@mutation
def huge_sizes(r: Recording, rng: Generator) -> Recording:
    most = min(MAX_SIZE, MAX_TOTAL // max(len(r.allocations), 1))
    huge = np.full(len(r.allocations), most)
    return _of_rows(r, size=huge, requested=huge, charge=huge)


@mutation
def places(r: Recording, rng: Generator) -> Recording:
    rows, count = r.allocations, len(r.regions)
    return _of_rows(
        r,
        region=_integers(rng, 0 if r.kind.has_program else -1, count - 1, rows.region),
        offset=_integers(rng, -1, MAX_SIZE, rows.offset),
        id=_integers(rng, -(2**63), 2**63 - 2, rows.id),
    )


@mutation
def regions(r: Recording, rng: Generator) -> Recording:
    found, most = r.regions, min(MAX_SIZE, MAX_TOTAL // max(len(r.regions), 1))
    times = [_integers(rng, -1, r.length, found.size) for _ in range(2)]
    changed = replace(
        found,
        index=_integers(rng, -1, 2**62, found.index),
        size=_integers(rng, 0, most, found.size),
        kind=_integers(rng, 0, sum(RegionKind), found.kind),
        start=None if found.start is None else np.minimum(*times),
        end=None if found.end is None else np.maximum(np.maximum(*times), 0),
    )
    return replace(r, regions=changed)


@mutation
def shared(r: Recording, rng: Generator) -> Recording:
    rows = r.allocations
    return _of_rows(r, canonical=_integers(rng, 0, max(len(rows) - 1, 0), rows.canonical))


@mutation
def random_roles(r: Recording, rng: Generator) -> Recording:
    return _of_rows(r, role=_integers(rng, 0, max(Role), r.allocations.role))


@mutation
def same_role(r: Recording, rng: Generator) -> Recording:
    return _of_rows(r, role=np.full(len(r.allocations), rng.integers(0, max(Role) + 1), dtype=np.uint8))


@mutation
def random_stacks(r: Recording, rng: Generator) -> Recording:
    count = len(r.stacks.parent)
    below = rng.permutation(count)  # frames have parents among those that come earlier in this order
    parent = np.full(count, -1, dtype=np.int32)
    parent[below[1:]] = below[(rng.random(max(count - 1, 0)) * np.arange(1, max(count, 1))).astype(np.int64)]
    return replace(
        _of_rows(r, stack=_integers(rng, -1, count - 1, r.allocations.stack)),
        stacks=replace(
            r.stacks,
            parent=parent,
            line=_integers(rng, -(2**31), 2**31 - 1, r.stacks.line),
        ),
    )


@mutation
def one_chain(r: Recording, rng: Generator) -> Recording:
    parent = np.arange(-1, len(r.stacks.parent) - 1, dtype=np.int32)
    return replace(r, stacks=replace(r.stacks, parent=parent))


def _each_text(r: Recording, change: Callable[[Text], Text]) -> Recording:
    def changed(table: Any) -> Any:
        names = [f.name for f in fields(table) if isinstance(getattr(table, f.name), Text)]
        return replace(table, **{name: change(getattr(table, name)) for name in names})

    tables = ("allocations", "stacks", "program", "spans", "caching_allocator", "program_chunks")
    return replace(r, **{name: changed(getattr(r, name)) for name in tables if getattr(r, name) is not None})


@mutation
def no_texts(r: Recording, rng: Generator) -> Recording:
    return _each_text(r, lambda text: no_text(len(text)))


@mutation
def empty_texts(r: Recording, rng: Generator) -> Recording:
    return _each_text(r, lambda text: Text(np.zeros(len(text), np.int32), Strings.of([""])))


@mutation
def odd_texts(r: Recording, rng: Generator) -> Recording:
    odd = Strings.of_bytes(TEXTS)
    return _each_text(r, lambda text: Text(_integers(rng, -1, len(odd) - 1, text.codes), odd))


@mutation
def mixed_texts(r: Recording, rng: Generator) -> Recording:
    return _each_text(r, lambda text: Text(_integers(rng, -1, len(text.strings) - 1, text.codes), text.strings))


@mutation
def odd_titles(r: Recording, rng: Generator) -> Recording:
    odd = ["", "\udcff", "a|b", "x" * 5000, "\x1b[31m", "..", "é" * 200]
    chosen: dict[str, Any] = {
        name: odd[rng.integers(len(odd))] for name in ("title", "run", "host", "memory", "source")
    }
    return replace(r, **chosen)


@mutation
def no_program_parts(r: Recording, rng: Generator) -> Recording:
    if r.program is None:
        return r
    return replace(r, program=replace(r.program, value=None, values=None, shardings=None, kernels=(), module=""))


@mutation
def other_program(r: Recording, rng: Generator) -> Recording:
    if r.program is None:
        return r
    return replace(
        r,
        program=replace(
            r.program,
            backend=list(Backend)[rng.integers(len(Backend))],
            devices=int(rng.choice([0, 1, 7, 2**31])),
            memory_space=int(rng.choice([0, 1, 5, 99])),
            shardings=None,
        ),
    )


@mutation
def random_values(r: Recording, rng: Generator) -> Recording:
    """Dataflow of random pairs, cycles among them."""
    program = r.program
    if program is None or program.value is None or program.values is None:
        return r
    values = program.values()
    value = _integers(rng, -1, len(values) - 1, program.value)
    mixed = _mixed(values, r.length, rng) if len(values) else values
    return replace(r, program=replace(program, value=value, values=Lazy(lambda: mixed)))


def _mixed(v: DataflowValues, length: int, rng: Generator) -> DataflowValues:
    last, positions, d, p = len(v) - 1, length - 1, v.derivations, v.products
    if length == 0:
        return v

    def values(column: Any, low: int = 0) -> Any:
        return _integers(rng, low, last, column)

    return replace(
        v,
        shape=_integers(rng, 0, 3, v.shape),
        elements=_integers(rng, 0, MAX_SIZE, v.elements),
        floating=_integers(rng, 0, 1, v.floating),
        producer=_integers(rng, -1, positions, v.producer),
        use=_integers(rng, 0, positions, v.use),
        loop_carried=(values(v.loop_carried[0]), values(v.loop_carried[1])),
        bundled=(values(v.bundled[0]), values(v.bundled[1])),
        argument=_integers(rng, -1, len(v), v.argument),
        result=values(v.result, -1),
        donor=_integers(rng, -1, len(v), v.donor),
        derivations=Derivations(values(d.source), values(d.target), d.steps, _integers(rng, 0, 2, d.kind)),
        products=Products(
            _integers(rng, 0, positions, p.position), p.kind, p.product, values(p.value), _integers(rng, 0, 1, p.side)
        ),
        transposed=values(v.transposed),
    )


@mutation
def no_options(r: Recording, rng: Generator) -> Recording:
    """Leave out everything that a recording may lack."""
    return replace(
        r, reported=None, clock=None, spans=None, free_stack=None, capture_info=None, reported_peak=None, capacity=None,
        capacity_source="", out_of_memory=None, program_chunks=None, caveats=(), timelines=(), caching_allocator=None,
    )  # fmt: skip


@mutation
def some_options(r: Recording, rng: Generator) -> Recording:
    names = ["reported", "clock", "spans", "free_stack", "capture_info", "reported_peak", "capacity", "out_of_memory"]
    names += ["program_chunks", "caching_allocator"]
    left_out: dict[str, Any] = {name: None for name in names if rng.integers(2)}
    return replace(r, **left_out)


@mutation
def figures(r: Recording, rng: Generator) -> Recording:
    sizes = [None, 0, 1, MAX_SIZE]
    return replace(
        r,
        capacity=sizes[rng.integers(4)],
        reported_peak=sizes[rng.integers(4)],
        caveats=(Caveat(CaveatCode.LIVE_BEFORE, "", sizes[rng.integers(4)]),),
    )


@mutation
def failure(r: Recording, rng: Generator) -> Recording:
    sizes = [None, 0, 1, MAX_SIZE]
    phases = list(OutOfMemoryPhase)
    names = ("asked", "free", "largest_free", "capacity", "in_use")
    chosen: dict[str, Any] = {name: sizes[rng.integers(4)] for name in names}
    failed = OutOfMemory(
        **chosen,
        phase=phases[rng.integers(3)],
        host=bool(rng.integers(2)),
        wanted_by="\udcff",
        program="jit_f",
        kernel_limit=bool(rng.integers(2)),
    )
    return replace(r, out_of_memory=failed)


@mutation
def reported_figures(r: Recording, rng: Generator) -> Recording:
    if r.reported is None:
        return r
    names = ("in_use", "reserved", "free", "lifetime_peak")
    columns = {name: _integers(rng, 0, MAX_SIZE, getattr(r.reported, name)) for name in names}
    odd = np.array([np.nan, 0.0, 1.0, 0.5])[rng.integers(0, 4, r.length)]
    return replace(r, reported=replace(r.reported, **columns, fragmentation=odd))


@mutation
def reserved(r: Recording, rng: Generator) -> Recording:
    state = r.caching_allocator
    if state is None or state.reserved is None:
        return r
    return replace(r, caching_allocator=replace(state, reserved=_integers(rng, 0, MAX_SIZE, state.reserved)))


@mutation
def still_clock(r: Recording, rng: Generator) -> Recording:
    return replace(r, clock=None if r.clock is None else np.full(r.length, 7))


@mutation
def odd_clock(r: Recording, rng: Generator) -> Recording:
    return replace(r, clock=None if r.clock is None else np.sort(_integers(rng, -(2**61), 2**61, r.clock)))


@mutation
def no_spans(r: Recording, rng: Generator) -> Recording:
    nothing = NamedSpans(no_text(0), np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
    return r if r.spans is None else replace(r, spans=nothing)


@mutation
def odd_spans(r: Recording, rng: Generator) -> Recording:
    spans = r.spans
    if spans is None:
        return r
    times = [_integers(rng, -1000, 2**61, spans.start_ns) for _ in range(2)]
    order = np.argsort(np.minimum(*times), kind="stable")
    start, end = np.minimum(*times)[order], np.maximum(*times)[order]
    return replace(r, spans=NamedSpans(spans.name, _integers(rng, 0, max(SpanKind), spans.kind), start, end))


@mutation
def counts(r: Recording, rng: Generator) -> Recording:
    if r.device_profile is None or r.axis is not Axis.INSTANT:
        return r
    column = r.device_profile.allocations
    return replace(r, device_profile=replace(r.device_profile, allocations=_integers(rng, 0, 2**40, column)))
