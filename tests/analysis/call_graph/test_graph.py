"""Flat and cumulative figures and calls, against google/pprof 0.0~git20211008 and loops over samples."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pprof_files import REAL, Frame, Sample, profile_of
from support.servers import DEMO, TESTS

from tb_memplugin.analysis.call_graph import (
    NO_REFINEMENT,
    CallGraph,
    Granularity,
    Refine,
    Samples,
    build_call_graph,
    diff_samples,
    live_samples,
)
from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers import open_file

FILES = {path.stem: path for path in [*sorted(DEMO.glob("device_profile*/*.prof")), *REAL]}
GRANULARITY = {"functions": Granularity.FUNCTION, "filefunctions": Granularity.FILE_FUNCTION, "lines": Granularity.LINE}

Nodes = dict[str, tuple[int, int]]
Calls = dict[tuple[str, str], int]


@cache
def answers() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((TESTS / "data/pprof_answers/answers.json.gz").read_bytes()))
    return found


def read(data: bytes) -> list[Recording]:
    (part,) = open_file(data, "memory.prof")
    return part.read()


def samples_in(path: Path) -> Samples:
    return live_samples(read(path.read_bytes()))


def graph_of(found: CallGraph, measure: str = "space") -> tuple[Nodes, Calls]:
    nodes = found.nodes
    names = [
        " ".join(filter(None, [nodes.function[i], place(nodes.file[i], int(nodes.line[i]))]))
        for i in range(len(nodes.flat))
    ]
    assert len(set(names)) == len(names)
    flat, cum = (nodes.flat, nodes.cum) if measure == "space" else (nodes.flat_allocations, nodes.cum_allocations)
    weight = found.calls.bytes if measure == "space" else found.calls.allocations
    calls = zip(found.calls.caller.tolist(), found.calls.callee.tolist(), weight.tolist(), strict=True)
    return (
        dict(zip(names, zip(flat.tolist(), cum.tolist(), strict=True), strict=True)),
        {(names[a], names[b]): size for a, b, size in calls},
    )


def place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def pprofs(question: str) -> tuple[Nodes, Calls]:
    answer = answers()[question]
    return {name: (flat, cum) for name, flat, cum in answer["nodes"]}, {(a, b): size for a, b, size in answer["calls"]}


def without_nothing(graph: tuple[Nodes, Calls]) -> tuple[Nodes, Calls]:
    """Drop zeros from both sides, because pprof sometimes omits them."""
    nodes, calls = graph
    return {name: both for name, both in nodes.items() if any(both)}, {
        pair: size for pair, size in calls.items() if size
    }


QUESTIONS = [question for question in answers() if len(question.split()) == 3 and question.split()[0] in FILES]


@pytest.mark.shared_data  # the questions name files, which marks derived from code cannot see
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_function_and_every_call_is_pprofs(question: str) -> None:
    stem, by, measure = question.split()
    found = whole_graph(samples_in(FILES[stem]), GRANULARITY[by], measure)
    assert without_nothing(found) == without_nothing(pprofs(question))


def whole_graph(
    samples: Samples, by: Granularity, measure: str = "space", refine: Refine = NO_REFINEMENT
) -> tuple[Nodes, Calls]:
    """Keep every node and edge, however small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tb_memplugin.analysis.call_graph.MIN_SHARE", float("inf"))
        return graph_of(build_call_graph(samples, by, refine, most=10**6), measure)


@pytest.mark.parametrize("by", ["functions", "lines"])
def test_the_change_between_two_profiles_is_pprofs_diff_base(by: str) -> None:
    both = diff_samples(*(samples_in(FILES[stem]) for stem in ("memory1", "memory9")))
    assert without_nothing(whole_graph(both, GRANULARITY[by])) == without_nothing(pprofs(f"memory1 memory9 {by} space"))
    assert both.total == samples_in(FILES["memory1"]).total  # pprof's percentages are of the base


@pytest.mark.parametrize("option", [name for name in answers() if " -" in name])
def test_focus_ignore_and_hide_are_pprofs(option: str) -> None:
    stem, text = option.split(" -")
    if stem not in FILES:
        pytest.skip("the profile is not here")
    name, pattern = text.split("=")
    found = whole_graph(samples_in(FILES[stem]), Granularity.FUNCTION, refine=refine_by(name, pattern))
    assert without_nothing(found) == without_nothing(pprofs(option))


def refine_by(option: str, pattern: str) -> Refine:
    return {"focus": Refine(focus=pattern), "ignore": Refine(ignore=pattern), "hide": Refine(hide=pattern)}[option]


def by_loops(samples: list[Sample], keep: set[str] | None = None) -> tuple[Nodes, Calls, Calls]:
    """Return the figures by function name, the calls, and the calls that pass through functions outside `keep`."""
    flat, cum, calls, residual = Counter[str](), Counter[str](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for sample in samples:
        outer = [frame.function for frame in reversed(sample.stack)]
        kept = [i for i, name in enumerate(outer) if keep is None or name in keep]
        if outer and kept and kept[-1] == len(outer) - 1:
            flat[outer[-1]] += sample.bytes
        for name in {outer[i] for i in kept}:
            cum[name] += sample.bytes
        pairs = [(outer[a], outer[b], b - a > 1) for a, b in pairwise(kept)]
        seen = set()
        for caller, callee, across in pairs:
            if caller != callee and (caller, callee) not in seen:
                seen.add((caller, callee))
                calls[caller, callee] += sample.bytes
                residual[caller, callee] |= across
    return {name: (flat[name], cum[name]) for name in cum}, dict(calls), dict(residual)


a_stack = st.lists(st.sampled_from("abcd").map(Frame), max_size=6)
some_samples = st.lists(st.builds(Sample, a_stack, st.integers(1, 50)), min_size=1, max_size=8)


@settings(max_examples=200, derandomize=True)
@given(some_samples)
def test_recursion_counts_once_as_in_loops_over_every_sample(samples: list[Sample]) -> None:
    nodes, calls, _ = by_loops(samples)
    whole = live_samples(read(profile_of(samples)))
    assert whole_graph(whole, Granularity.FUNCTION) == (nodes, calls)


@settings(max_examples=200, derandomize=True)
@given(some_samples, st.integers(1, 4))
def test_a_picture_of_few_functions_says_which_calls_go_through_others(samples: list[Sample], most: int) -> None:
    found = build_call_graph(live_samples(read(profile_of(samples))), most=most)
    nodes, _ = graph_of(found)
    assert nodes == by_loops(samples)[0]
    drawn = {name for name, shown in zip(nodes, found.drawn.tolist(), strict=True) if shown}
    assert len(drawn) == min(most, len(nodes))
    _, calls, residual = by_loops(samples, drawn)
    assert graph_of(found)[1] == calls
    names = list(nodes)
    pairs = zip(found.calls.caller.tolist(), found.calls.callee.tolist(), strict=True)
    across = zip(pairs, found.calls.residual.tolist(), strict=True)
    assert {(names[a], names[b]): through for (a, b), through in across} == {p: bool(n) for p, n in residual.items()}


def test_what_has_no_frame_left_is_told_and_not_lost() -> None:
    app, jax = Frame("f", "train.py"), Frame("g", "/x/site-packages/jax/_src/pjit.py")
    samples = live_samples(read(profile_of([Sample([jax, app], 5), Sample([jax], 7), Sample([], 9)])))
    found = build_call_graph(samples, refine=Refine(fold=True))
    assert (found.total, found.shown, found.unplaced) == (21, 21, 16)
    assert graph_of(found)[0] == {"f": (5, 5)}
    assert build_call_graph(samples, refine=Refine(focus="f")).shown == 5
    assert build_call_graph(samples, refine=Refine(ignore="f")).shown == 16


def test_devices_of_a_file_together_are_the_file() -> None:
    f, g = Frame("f"), Frame("g")
    recordings = read(profile_of([Sample([f], 5, device="cuda:0"), Sample([g, f], 7, device="cuda:1")]))
    assert len(recordings) == 2
    both = live_samples(recordings)
    assert both.stacks is recordings[0].stacks
    assert graph_of(build_call_graph(both))[0] == {"f": (5, 12), "g": (7, 7)}


def test_a_change_of_nothing_is_nothing() -> None:
    samples = samples_in(FILES["memory9"])
    found = build_call_graph(diff_samples(samples, samples))
    assert not found.nodes.cum.any() and not found.calls.bytes.any()


@pytest.mark.parametrize("pattern", ["(", "a" * 501, "(?P<x"])
def test_what_is_no_regular_expression_is_said(pattern: str) -> None:
    samples = samples_in(FILES["memory9"])
    for name in ("focus", "ignore", "hide"):
        with pytest.raises(InputError, match=f"Not a regular expression: {name}="):
            build_call_graph(samples, refine=refine_by(name, pattern))


def test_parents_that_come_later_in_a_broken_tree_end_the_stack() -> None:
    samples = samples_in(FILES["memory9"])
    stacks = samples.stacks
    broken = samples._replace(stacks=type(stacks)(np.roll(stacks.parent, 1), stacks.function, stacks.file, stacks.line))
    assert build_call_graph(broken).total == samples.total
