"""The glossary, compared with the figures that the code declares."""

from __future__ import annotations

import ast

import pytest
from support.markdown import section
from support.servers import REPOSITORY

PAGE = REPOSITORY / "docs" / "glossary.md"
PACKAGE = REPOSITORY / "tb_memplugin"
DECLARED_IN = {
    "Figures of a program": "analysis/usage/figures.py",
    "Figures of an allocator": "views/page/memory_profile.py",
    "Figures of a PyTorch recording": "views/page/torch_profile.py",
    "Figures of a device profile": "views/page/device_profile.py",
    "Figures of an out-of-memory error": "views/shared/oom.py",
}


def declared_keys(module: str) -> set[str]:
    """Return the keys of the figures that a module makes."""
    calls = [node for node in ast.walk(ast.parse((PACKAGE / module).read_text())) if isinstance(node, ast.Call)]
    figures = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Figure"]
    return {str(call.args[0].value) for call in figures if isinstance(call.args[0], ast.Constant)}


@pytest.mark.parametrize("heading", DECLARED_IN)
def test_every_figure_is_in_the_glossary(heading: str) -> None:
    rows = section(PAGE, heading).tables[0]
    assert {key.strip("`") for _, key, _ in rows} == declared_keys(DECLARED_IN[heading])
    assert all(meaning.endswith(".") and meaning[0].isupper() for *_, meaning in rows)


def test_no_other_module_declares_figures() -> None:
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if " Figure(" in path.read_text()}
    assert found == set(DECLARED_IN.values())


def test_each_term_is_there_once() -> None:
    terms = [row[0].lower() for row in section(PAGE, "Terms").tables[0]]
    assert len(set(terms)) == len(terms)
