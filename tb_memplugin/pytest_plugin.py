"""A pytest fixture for memory budgets: `memory_budget("70GiB").fits(compiled)`, or of a path.

pytest loads this module by its entry point. The rest of the package is imported only when a test uses the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Budget:
    """A limit on memory, in bytes."""

    limit: int

    def fits(self, subject: Any, recording: str = "") -> None:
        """Fail the test, with an explanation, where `subject` needs more memory than the limit.

        `subject` is a compiled JAX function, which need not have run: the memory that it reserves counts. Or it is a
        path (a logdir, a run, or a file that `tb-memplugin summary` reads): then the same figures count as in
        `tb-memplugin check` (what programs reserve, and peaks of other recordings), of the recordings whose id matches
        the regular expression `recording`. InputError where there are no recordings to check, where a file cannot be
        read, or where the check fails: only a budget that is exceeded is a failed test without an error.
        """
        __tracebackhide__ = True  # pytest then points at the line of the test
        from tb_memplugin.errors import InputError

        is_path = isinstance(subject, str | os.PathLike)
        try:
            if is_path:
                check = _check_path(os.fspath(subject), self.limit, recording)
            else:
                check = _check_program(subject, self.limit)
        except InputError:
            raise
        except Exception as error:
            where = os.fspath(subject) if is_path else type(subject).__name__
            what = "The budget could not be checked"
            raise InputError(what, where, f"{type(error).__name__}: {error}") from error
        if check:
            pytest.fail(check, pytrace=False)


@pytest.fixture
def memory_budget() -> Callable[[str | int], Budget]:
    """Make a budget from a size: `memory_budget("70GiB")`."""
    from tb_memplugin.sizes import parse_size

    return lambda size: Budget(parse_size(str(size)))


def _check_program(compiled: Any, limit: int) -> str:
    """Return an explanation where the program exceeds the limit, else an empty string."""
    from tb_memplugin.capture.programs import BudgetExceeded, assert_fits
    from tb_memplugin.errors import InputError

    try:
        assert_fits(compiled, limit)
    except BudgetExceeded as error:
        return str(error)
    except (AttributeError, ValueError) as error:
        remedy = "give a path, or what jax.jit(f).lower(...).compile() returns"
        raise InputError("Not a compiled function with a memory analysis", type(compiled).__name__, remedy) from error
    return ""


def _check_path(path: str, limit: int, recording: str) -> str:
    """Return an explanation where a recording exceeds the limit, else an empty string."""
    from tb_memplugin.catalog.listing import listing_of_path
    from tb_memplugin.errors import InputError
    from tb_memplugin.questions.compare.budget import budget, budget_lines
    from tb_memplugin.regex import recording_regex

    listing = listing_of_path(path)
    for problem in listing.problems:
        raise InputError("Cannot read all files", problem.file, problem.text)
    answer = budget(listing.recordings, limit, recording_regex(recording, "recording"))
    for unchecked in answer["problems"]:
        raise InputError("Cannot check all recordings", unchecked["file"], unchecked["text"])
    if not answer["checked"]:
        raise InputError("No recordings to check", recording or path, "`tb-memplugin summary` lists the recordings")
    return "\n".join(budget_lines(answer)) if answer["broken"] else ""
