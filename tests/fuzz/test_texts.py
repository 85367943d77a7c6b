"""Mutated inputs with a fixed seed, of texts, requests and names: an answer, or an InputError that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.checks import check_inputs, check_regressions, linux

SUBJECTS = ["oom_text", "fit_record", "request", "regex", "name"]


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_mutated_inputs_are_answered_or_refused(name: str, tmp_path: Path) -> None:
    check_inputs(name, tmp_path)


@pytest.mark.parametrize("name", SUBJECTS)
def test_inputs_that_were_faults_are_answered_or_refused(name: str) -> None:
    check_regressions(name)
