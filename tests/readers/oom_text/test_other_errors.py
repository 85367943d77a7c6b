"""Errors that are not about memory, as frameworks word them: none is read as an out-of-memory error."""

from __future__ import annotations

import pytest
from support.servers import TESTS

from tb_memplugin.errors import InputError
from tb_memplugin.readers.oom_text import read_oom_text

LINES = (TESTS / "data" / "other_errors.txt").read_text().splitlines()


def test_there_are_many() -> None:
    assert len(LINES) >= 250


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:50])
def test_another_error_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="No out-of-memory error"):
        read_oom_text(line.encode())


def test_a_log_of_them_is_refused() -> None:
    """Put them together, so that no message begins in one and ends in the next."""
    with pytest.raises(InputError, match="No out-of-memory error"):
        read_oom_text("\n".join(LINES).encode())
