"""The order in which tests run, and which of them share a process."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.browser.hosts import HOSTS
from xdist.scheduler import LoadScopeScheduling

_HOST = re.compile(rf"::\w+\[(?:.*-)?({'|'.join(HOSTS)})\b")


def arrange(items: list[pytest.Item], seed: int) -> None:
    """Shuffle files, and the tests of each file, so that no test comes to need what another one leaves. Not for seed 0.

    The longest files come first, as one that starts last is waited for: those in a browser, then those with slow tests.
    """
    chance = random.Random(seed)
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    arranged = list(files.values())
    if seed:
        chance.shuffle(arranged)
        for tests in arranged:
            chance.shuffle(tests)
    arranged.sort(key=_turn)
    items[:] = [item for tests in arranged for item in tests]


def _turn(tests: Sequence[pytest.Item]) -> int:
    if "browser" in tests[0].path.parts:
        return 0
    return 1 if any(test.get_closest_marker("slow") for test in tests) else 2


def number_of_workers(cores: int) -> int:
    """Return the number of processes for tests: half of their time, those in a browser wait for other processes."""
    return max(cores * 3 // 2, 1)


def scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """Return a scheduler that gives each worker the tests of a file at a time, or those of a host in the browser.

    So the fixtures of a module are set up once, and each host is started once.
    """
    found = LoadScopeScheduling(config, log)
    found._split_scope = group
    return found


def group(test: str) -> str:
    """Return the host that a test in the browser opens the page in, or the file of another test."""
    file = test.partition("::")[0]
    host = _HOST.search(test) if "/browser/" in file else None
    return host[1] if host else file
