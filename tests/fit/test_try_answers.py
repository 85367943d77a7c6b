"""The values that estimates of a sweep's answers are based on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_memplugin.fit.advice import AdviceToTry, Trial, try_answers
from tb_memplugin.fit.knobs import Varied
from tb_memplugin.fit.sweep import Sweep
from tb_memplugin.model.fit import Candidate, Outcome
from tb_memplugin.targets import Target

GIB = 2**30


def compiled(candidate: Candidate) -> Outcome:
    """Compile: 2 GiB and 1/2 GiB per item; from a batch of 24 on the compiler recomputes."""
    batch = int(dict(candidate.knobs)["batch"])
    return Outcome(candidate, 1.0, 2 * GIB + batch * GIB // 2, batch * GIB // 2, 16 * GIB, rematerialized=batch // 24)


def test_estimates_use_the_smallest_values_where_only_one_is_without_recomputation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Varied("batch", range(16, 65, 16), searched=True)
    sweep = Sweep("gpt.py:step", [[Target("v5e", (2, 2))]], (), [batch], compiled, tmp_path)
    found = sweep.run()
    assert [one.value for one in found] == [16]
    monkeypatch.setattr("tb_memplugin.fit.advice.pieces_of", lambda *_: [AdviceToTry("Remat", 8 * GIB)])
    (tried,) = try_answers(sweep, found)
    assert (tried.value, tried.new_value, tried.is_compiled) == (16, 32, False)


def test_without_a_program_there_is_nothing_to_try(tmp_path: Path) -> None:
    failed = Sweep(
        "gpt.py:step", [[Target("v5e", (2, 2))]], (("batch", 8),), [], lambda one: Outcome(one, error="no"), tmp_path
    )
    found = failed.run()
    assert try_answers(failed, found) == []
    assert Trial(found[0], [], lambda knobs, changes: found[0].last).run([]) == []
