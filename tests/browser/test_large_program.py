"""The page of a program whose roles load after its first view."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route
from support.browser.hosts import Host, open_standalone
from support.browser.pages import new_context
from support.browser.viewer import Viewer, until, until_held

from benchmarks.generate import write
from tb_memplugin.questions.kinds.verdict import MAX_LENGTH_WITH_ROLES

SECTIONS = "sections => sections.slice(0, 2).map(section => section.getBoundingClientRect().top)"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("large")
    write(folder / "logs", MAX_LENGTH_WITH_ROLES)  # and as many instructions, some of which have no buffer
    with open_standalone(folder / "logs", folder) as host:
        yield host


def test_roles_that_load_later_complete_the_headline_and_move_nothing(large: Host, browser: Browser) -> None:
    context = new_context(browser)
    page, held = context.new_page(), list[Route]()
    for name in ("rows", "verdict", "advice"):
        page.route(f"**/api/{name}?**", lambda route: held.append(route))
    viewer = Viewer(page)
    try:
        page.goto(large.address({"below": "buffers", "group": "none"}))
        until(viewer.get("buffer-row").count, bool, "no first view")
        headline = viewer.headline()
        assert headline.startswith("Peak ")
        assert "…" in viewer.get("buffer-row").first.locator("> *").all_inner_texts()
        sections = page.locator("main section")
        before = sections.evaluate_all(SECTIONS)
        until_held(page, held, 2)
        page.unroute("**/api/rows?**")
        page.unroute("**/api/verdict?**")
        for route in held:
            route.continue_()
        viewer.wait_until_ready()
        whole = until(viewer.headline, lambda text: " activations " in text, "no roles in the headline")
        assert whole.startswith(headline)
        until(viewer.get("buffer-row").first.locator(".role").count, bool, "no roles in the table")
        assert sections.evaluate_all(SECTIONS) == before
    finally:
        context.close()
