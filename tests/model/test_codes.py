"""Codes of the JSON contract: spelled consistently, explained, and each used by a reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tb_memplugin
from tb_memplugin.model.codes import CaveatCode, Code, NoEventsCode, documented

CODES: list[Code] = [*CaveatCode, *NoEventsCode]
READERS = "".join(p.read_text() for p in (Path(tb_memplugin.__file__).parent / "readers").rglob("*.py"))


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_snake_case_and_its_meaning_one_sentence(code: Code) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code) and code.name == code.upper()
    assert re.fullmatch(r"[A-Z].*[^.]\.", code.meaning) and ". " not in code.meaning


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_used_by_a_reader(code: Code) -> None:
    assert f"{type(code).__name__}.{code.name}" in READERS


def test_every_code_is_documented() -> None:
    assert {code for table in documented().values() for code in table} == set(CODES)
