"""Mutated inputs with a fixed seed, of what the tool keeps or is sent beside profiles: an answer, or an InputError."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.checks import check_inputs, check_regressions, linux

SUBJECTS = ["kernel", "baseline", "fit_cache", "fleet_cache", "uploads", "mcp"]


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_mutated_inputs_are_answered_or_refused(name: str, tmp_path: Path) -> None:
    check_inputs(name, tmp_path)


@pytest.mark.parametrize("name", SUBJECTS)
def test_inputs_that_were_faults_are_answered_or_refused(name: str) -> None:
    check_regressions(name)
