"""Facts of any recording that a reader can produce, and the causes between it and a normal one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.odd.invariants import violations
from support.odd.mutations import MUTATIONS, mutate
from support.odd.subjects import SUBJECTS, subject

from tb_memplugin.analysis.compare.causes import explain_change
from tb_memplugin.analysis.compare.facts import facts
from tb_memplugin.questions.compare.baseline_file import parse, text_of


@pytest.mark.filterwarnings("error::RuntimeWarning")
@settings(max_examples=40, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(list(SUBJECTS)),
    mutations=st.lists(st.sampled_from(list(MUTATIONS)), min_size=1, max_size=2),
    seed=st.integers(0, 9),
)
def test_a_mutated_recording_has_facts_that_the_file_keeps(name: str, mutations: Sequence[str], seed: int) -> None:
    normal = subject(name)[0]
    mutated = mutate(normal, list(mutations), seed)
    assume(not violations(mutated))
    before, after = facts(normal), facts(mutated)
    explain_change(before, after)
    explain_change(after, before)
    (kept,) = parse(text_of([after]).encode(), "memory.json").recordings
    assert explain_change(kept, after).causes == ()
