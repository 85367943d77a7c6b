"""Leak classification on programs of steps with known leaks."""

from __future__ import annotations

import dataclasses
import random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.allocators import STEP_NS, Block, allocator
from support.recordings import recording

from tb_memplugin.analysis.leaks import over_steps as leaks_module
from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_steps import LeakSites, leaking_sites, leaks
from tb_memplugin.analysis.usage.steps import MIN_STEPS, steps
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import NamedSpans
from tb_memplugin.model.text import Text
from tb_memplugin.questions.kinds.leaks import findings

Program = list[Block]

same_each_time = settings(derandomize=True)


class Found(NamedTuple):
    verdict: Verdict
    bytes_per_step: float
    evidence: int
    confidence: float
    survived: float
    live: list[int]


def sites_of(of: Recording) -> LeakSites:
    """Return the sites of a recording, after a comparison of those that leak with the function that finds no others."""
    found, alone = leaks(of), leaking_sites(of)
    assert found.sites is not None and alone.sites is not None
    leaking = found.sites.verdict == Verdict.LEAK
    for name in LeakSites._fields:
        np.testing.assert_array_equal(getattr(found.sites, name)[leaking], getattr(alone.sites, name))
    assert found.left_out == alone.left_out
    return found.sites


def found(of: Recording) -> dict[str, Found]:
    """Return the first finding of each site by its name."""
    sites = sites_of(of)
    first: dict[str, Found] = {}
    for i in range(len(sites.row)):
        each = Found(
            Verdict(int(sites.verdict[i])),
            float(sites.bytes_per_step[i]),
            int(sites.evidence[i]),
            float(sites.confidence[i]),
            float(sites.survived[i]),
            sites.live[i].tolist(),
        )
        first.setdefault(of.allocations.name[int(sites.row[i])], each)
    return first


def verdicts(program: Program, count: int) -> dict[str, Verdict]:
    return {site: each.verdict for site, each in found(allocator(program, count)).items()}


def temporaries(count: int) -> Program:
    return [Block("temporary", 64, step, step) for step in range(count)]


def leak(site: str, size: int, count: int, every: int = 1, phase: int = 0) -> Program:
    return [Block(site, size, step, None) for step in range(phase, count, every)]


def parameters(count: int) -> Program:
    """Allocate anew in each step and free the old blocks afterwards; the first blocks predate the recording."""
    return [Block("parameters", 1000, step, step + 1 if step + 1 < count else None) for step in range(-1, count)]


def sawtooth(count: int, every: int) -> Program:
    """Collect results, and free them together after every so many steps."""
    flush = [(step // every + 1) * every - 1 for step in range(count)]
    return [Block("gathered", 100, step, until if until < count else None) for step, until in enumerate(flush)]


def test_nothing_leaks_where_every_step_frees_its_own() -> None:
    answer = leaks(allocator(temporaries(10), 10))
    assert answer.sites is not None
    assert len(answer.sites.row) == 0
    assert answer.within_step == 10


def test_one_leak() -> None:
    [(site, one)] = found(allocator([*temporaries(12), *leak("leak", 100, 12)], 12)).items()
    assert site == "leak"
    assert one == (Verdict.LEAK, 100, 9, 1 - 0.5**9, 6, [100 * (step + 1) for step in range(12)])


def test_two_leaks_at_their_own_rates_the_faster_one_first() -> None:
    program = [*leak("slow", 10, 20), *leak("fast", 300, 20), *leak("fast", 300, 20), *temporaries(20)]
    answer = found(allocator(program, 20))
    assert [(site, one.verdict, one.bytes_per_step) for site, one in answer.items()] == [
        ("fast", Verdict.LEAK, 600),
        ("slow", Verdict.LEAK, 10),
    ]


@pytest.mark.parametrize("phase", [0, 1, 2])
@pytest.mark.parametrize("count", [12, 13, 14, 30, 31])
def test_a_leak_every_third_step(count: int, phase: int) -> None:
    one = found(allocator(leak("leak", 300, count, 3, phase), count))["leak"]
    assert one.verdict is Verdict.LEAK
    assert one.bytes_per_step == pytest.approx(100, rel=0.25)


@pytest.mark.parametrize("stop", [8, 12, 15, 18, 20, 21, 22])
def test_a_cache_that_stops_growing_is_no_leak(stop: int) -> None:
    program = [Block("cache", 100, step, None) for step in range(stop)]
    one = found(allocator([*program, *temporaries(24)], 24))["cache"]
    assert (one.verdict, one.evidence) == (Verdict.CACHE, 24 - stop)


def test_a_warm_up_is_no_leak() -> None:
    program = [Block("weights", 500, 0, None), Block("autotuned", 100, 1, None), *temporaries(16)]
    assert verdicts(program, 16) == {"weights": Verdict.WARM_UP, "autotuned": Verdict.WARM_UP}


@pytest.mark.parametrize("every", [2, 3, 4, 7])
def test_a_sawtooth_is_no_leak(every: int) -> None:
    one = found(allocator(sawtooth(25, every), 25))["gathered"]
    assert one.verdict is Verdict.SAWTOOTH
    assert max(one.live) == 100 * (every - 1)


def test_kept_for_one_step() -> None:
    one = found(allocator([*parameters(10), *temporaries(10)], 10))["parameters"]
    assert one == (Verdict.KEPT, 0, 9, 1 - 0.5**9, 1, [1000] * 10)


def test_kept_for_three_steps_is_steady() -> None:
    program = [Block("queue", 100, step, step + 3 if step + 3 < 20 else None) for step in range(20)]
    one = found(allocator(program, 20))["queue"]
    assert (one.verdict, one.survived, one.bytes_per_step) == (Verdict.STEADY, 3, 0)


def test_a_queue_that_fills_for_most_of_the_profile_is_no_leak() -> None:
    program = [Block("queue", 100, step, step + 28 if step + 28 < 40 else None) for step in range(40)]
    one = found(allocator(program, 40))["queue"]
    assert (one.verdict, one.live[-1]) == (Verdict.STEADY, 2800)


def test_a_ripple_on_much_that_stays_is_no_sawtooth() -> None:
    program = [*sawtooth(24, 3), *(Block("gathered", 100, 0, None) for _ in range(20))]
    assert verdicts(program, 24) == {"gathered": Verdict.STEADY}


def test_a_leak_within_a_sawtooth() -> None:
    program = [*sawtooth(30, 3), *(block._replace(until=None) for block in leak("gathered", 100, 30))]
    one = found(allocator(program, 30))["gathered"]
    assert one.verdict is Verdict.LEAK
    assert one.bytes_per_step == pytest.approx(100, rel=0.1)
    assert one.confidence < 1 - 0.5**20  # the site frees some of them on the way


def test_what_is_replaced_by_a_larger_one_each_step_leaks() -> None:
    """Concatenate a history: no old block stays, and no two blocks are of one size."""
    program = [Block("history", 100 * (step + 1), step, step + 1 if step < 9 else None) for step in range(10)]
    one = found(allocator(program, 10))["history"]
    assert (one.verdict, one.bytes_per_step, one.survived) == (Verdict.LEAK, 100, 1)


def test_what_rises_in_a_few_steps_may_do_so_by_chance() -> None:
    program = [Block("noise", 100 * (step + 1), step, step + 1 if step < 5 else None) for step in range(6)]
    assert Verdict.LEAK not in verdicts(program, 6).values()


def test_each_stack_is_a_site() -> None:
    program = [Block("a", 8, step, None, stack=step % 2) for step in range(12)]
    answer = sites_of(allocator(program, 12))
    assert (answer.allocations.tolist(), answer.sized.tolist()) == ([6, 6], [True, True])


def test_what_leaks_in_ever_new_sizes_is_one_finding() -> None:
    program = [Block("outputs", 100 + 4 * (step * 7 % 12), step, None, stack=1) for step in range(12)]
    answer = sites_of(allocator(program, 12))
    assert answer.verdict.tolist().count(Verdict.LEAK) == 1
    assert (answer.verdict[0], answer.sized[0], answer.allocations[0]) == (Verdict.LEAK, False, 12)
    assert answer.bytes_per_step[0] == pytest.approx(122, rel=0.1)


def test_what_is_freed_after_the_last_step_is_less_sure() -> None:
    """Free results after the loop, because the work is asynchronous."""
    lagging = allocator([block._replace(until=12) for block in leak("lagging", 100, 12)], 13)
    assert lagging.spans is not None
    spans = lagging.spans
    cut = NamedSpans(spans.name.take(np.arange(12)), spans.kind[:12], spans.start_ns[:12], spans.end_ns[:12])
    lagging = dataclasses.replace(lagging, spans=cut)
    assert "100% of that was freed after the last step" in findings(lagging)["findings"][0]["sentence"]
    after = sites_of(lagging)
    never = sites_of(allocator(leak("leak", 100, 12), 12))
    assert (after.freed_later.tolist(), never.freed_later.tolist()) == ([1], [0])
    assert after.verdict.tolist() == never.verdict.tolist() == [Verdict.LEAK]
    assert after.confidence[0] == never.confidence[0] / 2


def test_a_small_leak_beside_large_noise_at_the_same_place() -> None:
    """Allocate all memory of an executable in one runtime function."""
    rng = random.Random(1)
    program = [Block("execute", 2**20, step, min(step + rng.randrange(3), 29), stack=0) for step in range(30)]
    program += [Block("execute", 8, step, None, stack=0) for step in range(30)]
    answer = sites_of(allocator(program, 30))
    assert answer.verdict.tolist().count(Verdict.LEAK) == 1
    assert (answer.verdict[0], answer.sized[0], answer.bytes_per_step[0]) == (Verdict.LEAK, True, 8)


@pytest.mark.parametrize("seed", range(40))
def test_noise_of_an_allocator_is_no_leak(seed: int) -> None:
    """Keep a random number of blocks of each step, for up to a fifth of the steps."""
    rng = random.Random(seed)
    count = rng.randrange(15, 60)
    program = []
    for step in range(count):
        for _ in range(rng.randrange(6)):
            until = step + rng.randrange(count // 5)
            program.append(Block("noise", 256, step, until if until < count else None))
    assert Verdict.LEAK not in verdicts(program, count).values()


@pytest.mark.parametrize("seed", range(20))
def test_a_full_pool_that_evicts_at_random_is_no_leak(seed: int) -> None:
    """Keep some blocks of every age, without growth."""
    rng = random.Random(seed)
    pool = [Block("pool", 256, 0, None) for _ in range(12)]
    past = []
    for step in range(1, 40):
        victim = pool.pop(rng.randrange(len(pool)))
        past.append(victim._replace(until=step))
        pool.append(Block("pool", 256, step, None))
    assert Verdict.LEAK not in verdicts([*past, *pool], 40).values()


class Repeating(NamedTuple):
    """Return the allocations of a steady program at one site: in some steps of its period, each live for some steps."""

    phase: int
    size: int
    lives: int


@st.composite
def steady_programs(draw: st.DrawFn) -> tuple[Program, int]:
    """Repeat the same allocations every `period` steps after a random warm-up; each is freed within one period.

    Three periods fit into the steps after the warm-up: fewer do not show that it repeats.
    """
    count = draw(st.integers(MIN_STEPS, 60))
    warm_up = min(max(1, count // 4), 10)
    period = draw(st.integers(1, max(1, (count - warm_up) // 3)))
    blocks = st.builds(Repeating, st.integers(0, period - 1), st.integers(1, 2**40), st.integers(0, period))
    program = [
        Block(site, each.size, step, step + each.lives if step + each.lives < count else None)
        for site in ("a", "b", "c")[: draw(st.integers(1, 3))]
        for each in draw(st.lists(blocks, max_size=6))
        for step in range(each.phase, count, period)
    ]
    early = st.builds(
        Block, st.sampled_from("ab"), st.integers(1, 2**40), st.integers(-1, warm_up - 1), st.none(), st.just(-1)
    )
    return [*temporaries(count), *program, *draw(st.lists(early, max_size=5))], count


@same_each_time
@given(steady_programs())
def test_no_steady_program_leaks(program: tuple[Program, int]) -> None:
    blocks, count = program
    one_site = [block._replace(stack=0) for block in blocks]
    assert Verdict.LEAK not in verdicts(blocks, count).values()
    assert Verdict.LEAK not in verdicts(one_site, count).values()


@same_each_time
@given(st.integers(MIN_STEPS, 50), st.integers(1, 2**40))
def test_every_step_that_leaks_is_seen(count: int, size: int) -> None:
    one = found(allocator([*leak("leak", size, count), *parameters(count)], count))["leak"]
    assert (one.verdict, one.bytes_per_step) == (Verdict.LEAK, size)


def test_many_steps_are_looked_at_through_a_stride() -> None:
    count = 3 * leaks_module.MAX_STEPS
    answer = leaks(allocator([*leak("leak", 7, count), *parameters(count)], count))
    assert answer.sites is not None
    assert answer.sites.live.shape == (2, leaks_module.MAX_STEPS)
    assert (answer.sampled_steps[-1], answer.sites.live[0, -1]) == (count - 1, 7 * count)
    assert answer.sites.verdict.tolist() == [Verdict.LEAK, Verdict.KEPT]
    assert answer.sites.bytes_per_step.tolist() == [7, 0]


def test_sites_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks_module, "MAX_SITES", 2)
    answer = leaks(allocator([*leak("a", 1, 9), *leak("b", 3, 9), *leak("c", 2, 9)], 9))
    assert answer.sites is not None
    assert (answer.left_out, answer.sites.bytes_per_step.tolist()) == (1, [3, 2])


def test_without_steps_the_runs_of_what_repeats_stand_in() -> None:
    """Use the outermost span that repeats, which takes most of the time."""
    marked = [("serve", SpanKind.ANNOTATION), ("jit_f", SpanKind.EXECUTION)]
    of = allocator(leak("leak", 100, 12), 12, marked=marked)
    when = steps(of)
    assert (when.unit, when.marked, len(when.position)) == ("run of serve", False, 12)
    assert "12 runs of serve" in when.message
    one = found(of)["leak"]
    assert (one.verdict, one.bytes_per_step) == (Verdict.LEAK, 100)
    assert one.confidence == (1 - 0.5**9) / 2  # half: they may all be within one step


def test_what_takes_time_beside_the_executions_stands_in_for_no_step() -> None:
    """Save results after each execution; saving takes longer than the execution."""
    start = np.arange(12) * STEP_NS
    names, kinds = Text.of(["jit_f", "save"] * 12), [SpanKind.EXECUTION, SpanKind.ANNOTATION] * 12
    begin, end = np.c_[start, start + STEP_NS // 2].ravel(), np.c_[start + 9, start + STEP_NS - 9].ravel()
    beside = NamedSpans(names, np.array(kinds, np.uint8), begin, end)
    of = dataclasses.replace(allocator(leak("leak", 100, 12), 12), spans=beside)
    assert steps(of).unit == "run of jit_f"


def test_what_cannot_be_said_and_why() -> None:
    for of, reason in (
        (recording([], 4), "over time"),
        (allocator([], 6), "no allocator events"),
        (allocator(leak("leak", 1, 6), 6, marked=[]), "marks no steps"),
        (allocator(leak("leak", 1, 4), 4), "this profile has 4"),
        (allocator(leak("leak", 1, 4), 4, marked=[("jit_f", SpanKind.EXECUTION)]), "repeats often enough"),
    ):
        answer = leaks(of)
        assert answer.sites is None
        assert reason in answer.steps.message


def test_spans_within_spans_are_one_step() -> None:
    marked = [("train", SpanKind.STEP), ("inner", SpanKind.STEP)]
    assert len(steps(allocator(leak("leak", 1, 7), 7, marked=marked)).position) == 7


def test_steps_without_events_hold_what_the_last_one_left() -> None:
    program = [Block("weights", 500, 0, None), Block("weights", 500, 1, None)]
    one = found(allocator(program, 9))["weights"]
    assert (one.verdict, one.live) == (Verdict.WARM_UP, [500, *[1000] * 8])


@same_each_time
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 7), st.none() | st.integers(0, 7)), min_size=1))
def test_bytes_at_the_end_of_each_step_counted_plainly(lives: list[tuple[str, int, int | None]]) -> None:
    count = 8
    blocks = [Block(site, 16, step, None if lasts is None else min(step + lasts, 7)) for site, step, lasts in lives]
    answer = found(allocator(blocks, count))
    for site in "abc":
        mine = [block for block in blocks if block.site == site]
        live = [
            sum(16 for b in mine if b.step <= step and (b.until is None or step < b.until)) for step in range(count)
        ]
        assert (answer[site].live if site in answer else [0] * count) == live
        if site in answer:
            ends = sorted((count if block.until is None else block.until) - block.step for block in mine)
            assert answer[site].survived == ends[(len(ends) - 1) // 2]
