"""The state of a process that capturing keeps, cleared for each test."""

from __future__ import annotations

import pytest

from tb_memplugin.capture import guard, profile_run


@pytest.fixture(autouse=True)
def a_process_of_its_own() -> None:
    guard._warned.clear()
    profile_run._runs.clear()
