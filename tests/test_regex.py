"""Regular expressions of links: none takes more than linear time, and those that people write work."""

from __future__ import annotations

import pytest
from support.growth import grows_linearly

from tb_memplugin import regex
from tb_memplugin.errors import InputError
from tb_memplugin.regex import Regex

# Engines that backtrack take exponential or polynomial time for these.
SLOW_ELSEWHERE = [
    r"(\w?){40}!", r"(\w|\w){25}!", "(a+)+$", "(a|a)*$", "((a*))*b", "(?:x+y?)+z", "(a{1,}){2,}b", "(.*)*!",
    "(.*a){20}!", r"(\w+\s?)*!", "(a?){100}a{100}!", "a*a*a*a*a*a*!", "(a|b|ab)*c",
]  # fmt: skip


@pytest.mark.parametrize("pattern", SLOW_ELSEWHERE)
def test_an_expression_takes_time_in_proportion_to_the_text(pattern: str) -> None:
    expression = Regex(pattern, "focus")
    assert grows_linearly(lambda size: expression.search("a" * size), 20_000)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^func1$", "func1"),
        ("jax/_src|site-packages", "/usr/lib/site-packages/flax"),
        (r"layer_\d+/(mlp|attention)", "layer_12/mlp"),
        ("(abc)+", "abcabc"),
        ("[(+]+x*", "(x"),
        (r"\(a+\)+", "(aa)"),
        ("(?i)ADAM", "optax.adam"),
        ("a.*b", "a to b"),
        ("Ä", "Ärger"),
        ("", "anything"),
    ],
)
def test_what_people_write_finds_what_they_mean(pattern: str, text: str) -> None:
    expression = Regex(pattern, "focus")
    assert expression.search(text)
    assert not pattern or not expression.search("-")


@pytest.mark.parametrize(
    "pattern",
    ["(", "a" * 501, "(?P<x", "*", "(?=a)", r"(a)\1", "\ud800"],
)
def test_what_is_no_usable_expression_is_refused_in_one_line(pattern: str) -> None:
    with pytest.raises(InputError, match="Not a regular expression: hide=") as refused:
        Regex(pattern, "hide")
    assert "\n" not in str(refused.value)


def test_an_expression_of_too_many_instructions_is_refused() -> None:
    with pytest.raises(InputError, match=r"Regular expression is too slow: hide=.*too large"):
        Regex("(.?){500}(.?){490}!", "hide")


def test_searches_end_when_their_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "MAX_SECONDS", 0.0)
    with pytest.raises(InputError, match="took more than"):
        Regex("a", "focus").search("a")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("jit_step(10)", True),
        ("jit_step(1)", False),
        (r"jit_step\(10\)", True),
        ("(jit|pmap)_step", True),
        ("(10)", True),
    ],
)
def test_a_program_is_found_by_the_name_that_is_printed(pattern: str, found: bool) -> None:
    assert regex.recording_regex(pattern, "recording").search("run|host|jit_step(10)|HBM") == found
