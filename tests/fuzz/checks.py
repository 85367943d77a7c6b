"""Checks of a subject: the inputs of a seed, and the inputs that were faults once."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from fuzz.campaign import Campaign
from fuzz.subjects import subject
from fuzz.trial import seconds_of

SEED = 1
linux = pytest.mark.skipif(sys.platform != "linux", reason="the limits of a worker are Linux's")


def check_inputs(name: str, folder: Path) -> None:
    """Try the inputs of an ordinary test run."""
    tried = subject(name)
    found = Campaign(folder).run(name, SEED, 0, tried.inputs)
    texts = "\n\n".join(f"{fault.path}\n{fault.text}" for fault in found.found)
    assert not found.faults, f"{found.faults} faults of {found.tried} inputs:\n{texts}"
    assert found.tried == tried.inputs
    assert 0 < found.answered < found.tried, "inputs should be damaged, yet some of them readable"


def check_regressions(name: str) -> None:
    """Try what was a fault once, and ask everything about it."""
    tried = subject(name)
    for path in tried.regressions():
        data, before = path.read_bytes(), time.process_time()
        tried.attempt(data, True)
        assert time.process_time() - before < seconds_of(data), f"{path.name} takes too long"
