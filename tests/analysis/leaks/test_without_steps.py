"""Growth through recordings that mark no steps: leaks, and the growth of other programs."""

from __future__ import annotations

import numpy as np
import pytest
from support.allocators import Block, allocator

from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_steps import leaks
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_answer import explain_answer
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.questions.kinds.verdict import verdict

ITERATIONS = 900
KIB = 1024


def loop(*blocks: Block, iterations: int = ITERATIONS) -> Recording:
    """Return the recording of an unmarked loop that allocates and frees two temporaries in each iteration."""
    temporaries = [Block("temporary", KIB * size, i, i) for i in range(iterations) for size in (3, 5)]
    return allocator([*temporaries, *blocks], iterations, marked=[])


def leaking() -> Recording:
    return loop(*(Block("replay.py:12", 256 * KIB, i, None) for i in range(ITERATIONS)))


def test_many_equal_allocations_that_stay_to_the_end_are_a_possible_leak() -> None:
    found = leaks(leaking())
    assert found.sites is not None
    assert found.sites.verdict.tolist() == [Verdict.LEAK]
    per_iteration = 256 * KIB
    # 5 events an iteration, so 200 iterations for 1,000 events.
    assert found.sites.bytes_per_step[0] == pytest.approx(200 * per_iteration, rel=0.02)
    assert 0 < found.sites.confidence[0] < 0.5


def test_answers_state_the_growth_and_what_it_is_measured_over() -> None:
    recording = leaking()
    text = "\n".join(lines(explain(recording)))
    assert "Possible leak: replay.py:12 grows 50.0 MiB per 1,000 events." in f"{verdict(recording)['alarm']}."
    assert "Leaks, over 32 parts of the recording: 1\nThe profile marks no steps" in text
    assert "Grows by 50.0 MiB per 1,000 events: it grew in 24 of the 24 parts of the recording" in text
    answer = explain_answer(recording, [recording], Asked("run"))["leaks"]
    assert (answer["unit"], answer["steps"], answer["verdicts"]) == ("1,000 events", 32, {"leak": 1})


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_at_uneven_times_is_found(seed: int) -> None:
    at = np.sort(np.random.default_rng(seed).integers(0, ITERATIONS, 400)).tolist()
    found = leaks(loop(*(Block("leak", 4 * KIB, i, None) for i in at)))
    assert found.sites is not None and found.sites.verdict.tolist() == [Verdict.LEAK]


PASS = 120  # layers


def sawtooth(every: int) -> list[Block]:
    flush = [(i // every + 1) * every - 1 for i in range(ITERATIONS)]
    return [Block("gathered", KIB, i, until if until < ITERATIONS else None) for i, until in enumerate(flush)]


GROWTH_OF_OTHER_KINDS = {
    "nothing stays": [],
    "a cache that fills once": [Block("cache", KIB, i, None) for i in range(500)],
    "a cache that replaces its entries": [
        Block("cache", KIB, i, i + 300 if i + 300 < ITERATIONS else None) for i in range(ITERATIONS)
    ],
    "parameters made at the start": [Block("parameters", KIB, 0, None) for _ in range(600)],
    "optimizer state of the first of few steps": [Block("state", KIB, 200, None) for _ in range(600)],
    "a sawtooth that was just freed": sawtooth(300),
    "a sawtooth that was freed a while ago": sawtooth(280),
    "few allocations": [Block("log", KIB, i, None) for i in range(0, ITERATIONS, 10)],
    "a load that allocates at the end": [Block("load", KIB, i, None) for i in range(600, ITERATIONS)],
    "a buffer that grows by replacement": [Block("buffer", KIB * i, i, i + 1) for i in range(ITERATIONS - 1)],
}


@pytest.mark.parametrize("blocks", GROWTH_OF_OTHER_KINDS.values(), ids=GROWTH_OF_OTHER_KINDS)
def test_growth_of_other_kinds_is_no_leak(blocks: list[Block]) -> None:
    found = leaks(loop(*blocks))
    assert found.sites is not None and not len(found.sites.row)


def test_the_activations_of_one_pass_are_no_leak() -> None:
    kept = [Block(f"line {line}", KIB, layer, None) for layer in range(PASS) for line in range(8)]
    found = leaks(loop(*kept, iterations=PASS))
    assert found.sites is not None and not len(found.sites.row)


def test_a_model_that_is_built_is_no_leak() -> None:
    found = leaks(allocator([Block("experts", KIB, i, None) for i in range(ITERATIONS)], ITERATIONS, marked=[]))
    assert found.sites is not None and not len(found.sites.row)


def test_a_short_recording_has_no_verdict() -> None:
    found = leaks(loop(*(Block("leak", KIB, i, None) for i in range(100)), iterations=100))
    assert found.sites is None
    assert "marks no steps" in found.steps.message
