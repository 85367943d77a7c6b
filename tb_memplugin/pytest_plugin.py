"""Budgets in tests: a test that takes `memory_budget` says `memory_budget("70GiB").fits(compiled)`, or of a path.

pytest finds this by its entry point. Nothing of ours is imported before a test asks for the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Budget:
    """What may be needed at most, in bytes."""

    limit: int

    def fits(self, what: Any, recording: str = "") -> None:
        """Fails the test, with the explanation, where more is needed than the limit.

        `what` is a compiled function of JAX, which need not have run: all that it reserves counts. Or it is a path (a
        logdir, a run, or a file that `tb-memplugin summary` reads): then the peaks count, as `tb-memplugin check` has
        them, of the recordings whose id the regular expression `recording` is found in. InputError where there is
        nothing to check, or where something could not be read.
        """
        __tracebackhide__ = True  # the test that failed is the caller's
        of_path = isinstance(what, str | os.PathLike)
        broken = _path_above(os.fspath(what), self.limit, recording) if of_path else _program_above(what, self.limit)
        if broken:
            pytest.fail(broken, pytrace=False)


@pytest.fixture
def memory_budget() -> Callable[[str | int], Budget]:
    """`memory_budget("70GiB")`: a budget, from a size as people write one."""
    from tb_memplugin.sizes import parse_size

    return lambda size: Budget(parse_size(str(size)))


def _program_above(compiled: Any, limit: int) -> str:
    """Why the program does not fit; nothing where it does."""
    from tb_memplugin.capture import assert_fits
    from tb_memplugin.errors import InputError

    try:
        assert_fits(compiled, limit)
    except AssertionError as error:
        return str(error)
    except (AttributeError, ValueError) as error:
        remedy = "give a path, or what jax.jit(f).lower(...).compile() returns"
        raise InputError("Not a compiled function that tells of its memory", type(compiled).__name__, remedy) from error
    return ""


def _path_above(path: str, limit: int, recording: str) -> str:
    """What in there is above the limit, and why; nothing where all is within it."""
    import re

    from tb_memplugin.catalog import listing_of_path
    from tb_memplugin.errors import InputError
    from tb_memplugin.views.shared.budget import budget, verdict

    listing = listing_of_path(path)
    for problem in listing.problems:
        raise InputError("Not all of it can be read", problem.file, problem.text)
    answer = budget(listing.recordings, limit, re.compile(recording))
    if not answer["checked"]:
        raise InputError("There is nothing to check", recording or path, "see tb-memplugin summary")
    return "\n".join(verdict(answer)) if answer["broken"] else ""
