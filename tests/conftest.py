"""Fixtures shared by several test folders, and marks derived from the resources that a test uses."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import is_hypothesis_test
from support.hook_environment import environment as environment
from support.reach import needs_shared_data, reaches_slow_modules


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what tests compile and read out of the user's cache folder."""
    for name in ("FIT", "FLEET"):
        os.environ[f"TB_MEMPLUGIN_{name}_CACHE"] = str(tmp_path_factory.mktemp(name) / "cache")


@pytest.fixture(autouse=True)
def _log_levels() -> Iterator[None]:
    """Undo the log levels that a command sets for its process."""
    loggers = [logging.getLogger(f"tb_memplugin.{room}") for room in ("catalog", "analysis", "views", "hosts")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function):
            if needs_shared_data(item):
                item.add_marker(pytest.mark.shared_data)
            # Property tests run a hundred examples each.
            if reaches_slow_modules(item) or is_hypothesis_test(item.function):
                item.add_marker(pytest.mark.slow)
