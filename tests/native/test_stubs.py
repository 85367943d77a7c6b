"""Types of the compiled modules, derived from their sources."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from support.servers import REPOSITORY

from tools.native_build import STUB_HEAD, sources, stub

SOURCE = '''"""A loop."""
import numpy as np

LEFT, RIGHT = range(2)
NAMES: tuple[str, ...] = ("a", "b")
_SALT = 3

cdef enum:
    FIRST = 1

cdef class _Private:
    def hidden(self) -> int:
        return 1

def rows(const int64_t[::1] start, const double[:, ::1] own, int count=2,
         bint deep=True, budget: Charges | None = None) -> tuple[I64, Bools]:
    """Return rows."""

class Damaged(ValueError):
    asks_for: str

cdef class Plain:
    cdef readonly uint32_t root
    cdef vector[int32_t] lists

    cdef int inner(self) noexcept nogil:
        return 0

    def keys(self) -> U32:
        return self.own()
'''
STUB = """\
LEFT: Final[int]
RIGHT: Final[int]
NAMES: Final[tuple[str, ...]]
def rows(start: I64, own: F64, count: int = 2, deep: bool = True, budget: Charges | None = None) -> tuple[I64, Bools]: ...
class Damaged(ValueError):
    ...
    asks_for: str
class Plain:
    ...
    root: int
    def keys(self) -> U32: ...
"""  # noqa: E501 (a declaration has one line)


def test_a_stub_declares_what_python_sees_of_a_module() -> None:
    assert stub(SOURCE) == STUB_HEAD + STUB


@pytest.mark.parametrize("source", sources(REPOSITORY), ids=lambda path: str(path.name))
def test_each_public_function_has_a_declaration(source: Path) -> None:
    name = ".".join(source.relative_to(REPOSITORY).with_suffix("").parts)
    declared = re.findall(r"^(?:def|class) (\w+)", stub(source.read_text(encoding="utf-8")), re.MULTILINE)
    module = importlib.import_module(name)
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == name and key[0] != "_"]
    assert set(declared) == set(own)
