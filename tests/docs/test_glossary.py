"""The glossary, compared with the figures that the code declares."""

from __future__ import annotations

import pytest
from support.markdown import section
from support.servers import REPOSITORY

from tb_memplugin.analysis.usage.figure_definitions import GLOSSARY

PAGE = REPOSITORY / "docs" / "glossary.md"
PACKAGE = REPOSITORY / "tb_memplugin"


@pytest.mark.parametrize("heading", GLOSSARY)
def test_every_figure_is_in_the_glossary(heading: str) -> None:
    rows = section(PAGE, heading).tables[0]
    expected = [(label, key, text) for key, (label, text) in GLOSSARY[heading].items()]
    assert [(label, key.strip("`"), meaning.replace("`", "")) for label, key, meaning in rows] == expected
    assert all(meaning.endswith(".") and meaning[0].isupper() for *_, meaning in rows if not meaning.startswith("`"))


def test_every_figure_on_the_page_has_a_definition() -> None:
    made = [path for path in PACKAGE.rglob("*.py") if " Figure(" in path.read_text()]
    assert [path.name for path in made] == ["figure_definitions.py"]


def test_each_term_is_there_once() -> None:
    terms = [row[0].lower() for row in section(PAGE, "Terms").tables[0]]
    assert len(set(terms)) == len(terms)
