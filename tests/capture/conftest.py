"""The state of a process that capturing keeps, cleared for each test."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tb_memplugin.capture import guard


@pytest.fixture(autouse=True)
def a_process_of_its_own() -> None:
    guard._warned.clear()
    device_profiles: Any = sys.modules.get("tb_memplugin.capture.device_profiles")
    if device_profiles is not None:
        device_profiles._runs.clear()
