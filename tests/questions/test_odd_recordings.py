"""Every answer about any recording that a reader can produce is an answer or an InputError.

    ODD_RECORDINGS=10000 pytest tests/questions/test_odd_recordings.py

tries so many, at random. By default it tries a few that are always the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.odd.answers import check_every_answer
from support.odd.invariants import violations
from support.odd.mutations import MUTATIONS, mutate
from support.odd.subjects import SUBJECTS, subject
from support.recordings import recording

TRIED = int(os.environ.get("ODD_RECORDINGS", 0))
long_or_short = settings(
    max_examples=TRIED or 15,
    derandomize=not TRIED,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("name", SUBJECTS)
def test_readers_guarantee_the_invariants(name: str) -> None:
    for found in subject(name):
        assert not violations(found)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@long_or_short
@given(
    name=st.sampled_from(list(SUBJECTS)),
    number=st.integers(0, 2),
    mutations=st.lists(st.sampled_from(list(MUTATIONS)), min_size=1, max_size=4),
    seed=st.integers(0, 9),
)
def test_every_answer_about_a_mutated_recording(name: str, number: int, mutations: Sequence[str], seed: int) -> None:
    of_file = subject(name)
    mutated = mutate(of_file[number % len(of_file)], list(mutations), seed)
    assert not violations(mutated)
    check_every_answer([mutated])


@pytest.mark.parametrize(
    "mutations", [["no_positions"], ["one_position"], ["no_rows"], ["no_values"], ["no_positions", "no_rows"]]
)
@pytest.mark.parametrize("name", ["accumulated.v5e", "leak", "snapshot"])
def test_every_answer_about_an_emptied_recording(name: str, mutations: list[str]) -> None:
    check_every_answer([mutate(subject(name)[0], mutations, 0)])


def test_a_recording_of_nothing() -> None:
    check_every_answer([recording([], 0)])


@pytest.mark.parametrize(
    ("name", "number", "mutations", "seed"),
    [
        ("flash_attention.tpu7x", 0, ["mixed_texts"], 4),
        ("memory1.prof", 0, ["failure", "odd_titles"], 2),
        ("snapshot", 0, ["lifetimes", "born_after"], 3),
        ("leak", 0, ["no_bytes"], 4),
        ("ring_matmul.v4", 0, ["always_live", "random_stacks"], 3),
        ("score_logits.v4", 0, ["one_position", "random_values"], 0),
    ],
)
def test_recordings_that_once_had_no_answer(name: str, number: int, mutations: list[str], seed: int) -> None:
    check_every_answer([mutate(subject(name)[number], mutations, seed)])
