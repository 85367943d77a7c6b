"""The order in which tests run, and which of them share a process."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from support.browser.hosts import HOSTS
from xdist.scheduler import LoadScopeScheduling

_HOST = re.compile(rf"::\w+\[(?:.*-)?({'|'.join(HOSTS)})\b")


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """Shuffle files, and the tests of each file, so that no test comes to need what another one leaves.

    The tests in a browser come first: their groups are the longest, and one that starts last is waited for.
    """
    chance = random.Random(seed)
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    shuffled = list(files.values())
    chance.shuffle(shuffled)
    shuffled.sort(key=lambda tests: "browser" not in tests[0].path.parts)
    for tests in shuffled:
        chance.shuffle(tests)
    items[:] = [item for tests in shuffled for item in tests]


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
