"""HTML for output cells: what it contains, and that names from a profile are never markup."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.servers import DEMO

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.html import document, folded, table
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_html import explanation
from tb_memplugin.sizes import bytes_text

MAX_BYTES = 300_000
RUNS = sorted(path.name for path in DEMO.iterdir() if (path / "plugins").exists() or list(path.glob("*.prof")))


def recordings(run: str) -> list[Recording]:
    return listing_of_path(str(DEMO / run)).recordings


def html(run: str) -> str:
    found = recordings(run)
    return document([explanation(found[0], found)])


@pytest.mark.parametrize("run", RUNS)
def test_every_demo_is_small_and_asks_for_nothing(run: str) -> None:
    text = html(run)
    assert len(text) < MAX_BYTES
    assert not any(part in text for part in ("<script", "src=", "href=", "url(", "@import"))


def test_it_shows_headline_curve_roles_advice_and_buffers() -> None:
    found = recordings("v5e_train_step")
    answer, text = explain(found[0]), html("v5e_train_step")
    assert answer["headline"] in text
    assert "<polygon" in text
    assert all(f"{role['role']} {bytes_text(role['bytes'])}" in text for role in answer["roles"][:5])
    assert all(piece["title"] in text for piece in answer["advice"]["advice"])
    assert bytes_text(answer["buffers"][0]["bytes"]) in text


def test_a_moment_has_no_curve() -> None:
    assert "<polygon" not in html("device_profile")


def test_an_error_is_its_headline() -> None:
    found = recordings("v5e_out_of_memory")
    assert explain(found[0], None, found)["headline"] in html("v5e_out_of_memory")


def test_names_are_text() -> None:
    (first, *_) = recordings("v5e_train_step")
    text = document([explanation(replace(first, title="<script>alert(1)</script>"))])
    assert "<script>" not in text
    assert "<b>" not in table(["<b>"], [("<b>",)])
    assert "<b>" not in folded("<b>", table([], []))
