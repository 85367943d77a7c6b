"""Codes of the JSON contract: spelled consistently, explained, and each used by a reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tb_memplugin
from tb_memplugin.model.caveats import CaveatCode, NoEventsCode
from tb_memplugin.model.kinds import Labeled

CODES: list[Labeled] = [*CaveatCode, *NoEventsCode]
PACKAGE = Path(tb_memplugin.__file__).parent
# Analyses of figures raise one, too.
RAISING = "".join(p.read_text() for room in ("readers", "analysis/usage") for p in (PACKAGE / room).rglob("*.py"))


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_snake_case_and_its_meaning_one_sentence(code: Labeled) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code) and code.name == code.upper()
    assert re.fullmatch(r"[A-Z].*[^.]\.", code.label) and ". " not in code.label


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_used(code: Labeled) -> None:
    assert f"{type(code).__name__}.{code.name}" in RAISING


def test_every_code_is_documented() -> None:
    page = (PACKAGE.parent / "docs" / "json.md").read_text()
    assert all(f"| `{code}` | {code.label} |\n" in page for code in CODES)
