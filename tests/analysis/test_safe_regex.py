"""Regular expressions from links: patterns that could backtrack forever are rejected, ordinary ones are accepted."""

from __future__ import annotations

import pytest

from tb_memplugin.analysis.safe_regex import compile_regex
from tb_memplugin.errors import InputError


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*$", "((a*))*", "(?:x+y?)+", "(a{1,}){2,}", "([)]+)+", "(a(b)+)*", r"(\(+)+", "((ab)*c)+"],
)
def test_repeats_of_what_repeats_are_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="Regular expression is too slow: focus="):
        compile_regex(pattern, "focus")


@pytest.mark.parametrize(
    "pattern",
    [
        "^func1$",
        "jax/_src|site-packages",
        r"layer_\d+/(mlp|attention)",
        "(abc)+",
        "[(+]+x*",
        r"\(a+\)+",
        "(a+b)?c",
        "a.*b",
    ],
)
def test_what_people_write_is_taken(pattern: str) -> None:
    assert compile_regex(pattern, "focus").pattern == pattern


@pytest.mark.parametrize("pattern", ["(", "a" * 501, "(?P<x", "*", "a{99999999999999999999}"])
def test_what_is_no_regular_expression(pattern: str) -> None:
    with pytest.raises(InputError, match="Not a regular expression: hide="):
        compile_regex(pattern, "hide")
