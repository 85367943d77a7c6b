"""Code beside stack frames, and links to an editor."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

from support.browser.hosts import Host, in_host
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open
from support.browser.viewer import Viewer, until
from support.servers import DEMO

FILE = "make_demo.py"


def select_buffer(viewer: Viewer) -> None:
    """Select a buffer whose frames are lines of the demo's code, which lies in the logdir."""
    viewer.get("table-group").select_option("none")
    viewer.get("buffer-table").locator(".virtual-line", has_text=FILE).first.click()
    viewer.details()


def test_a_frame_shows_its_code_and_opens_in_an_editor(viewer: Viewer, host: Host) -> None:
    select_buffer(viewer)
    code = viewer.get("frame-code").first
    code.wait_for()
    here = code.locator(".here").inner_text()
    number = "".join(filter(str.isdigit, here[:5]))
    lines = (DEMO / FILE).read_text().splitlines()
    assert lines[int(number) - 1].strip() in here and lines[int(number) - 1].strip()
    assert code.locator("figcaption").inner_text() == FILE
    toggle = viewer.get("frame-code-toggle").first
    assert toggle.get_attribute("aria-expanded") == "true"
    toggle.click()
    until(lambda: toggle.get_attribute("aria-expanded"), lambda value: value == "false", "still open")

    assert viewer.get("editor-link").count() == 0  # off by default
    viewer.get("editor-choice").first.select_option("VS Code")
    link = viewer.get("editor-link").first.get_attribute("href") or ""
    assert link.startswith("vscode://file/") and link.endswith(f"/{FILE}:{number}")
    viewer.rest()
    viewer.page.reload()
    viewer.wait_until_ready()
    assert viewer.get("editor-link").first.get_attribute("href") == link  # the browser remembers it
    viewer.get("editor-choice").first.select_option("other editor…")
    viewer.get("editor-template").first.fill("javascript:alert(1)//{path}")
    until(viewer.get("editor-link").count, lambda count: count == 0, "a link that is no editor's")
    viewer.get("editor-choice").first.select_option("no editor")


@in_host("standalone")
def test_a_page_asks_for_the_frames_of_a_stack_at_once(open_at: Open) -> None:
    viewer = open_at(tab="memory_viewer", run=TRAIN, module=LARGEST)
    asked: list[str] = []
    viewer.page.on("request", lambda request: asked.append(request.url) if "source_code" in request.url else None)
    select_buffer(viewer)
    viewer.get("frame-code").first.wait_for()
    assert len(asked) == 1
    assert len(json.loads(parse_qs(urlsplit(asked[0]).query)["frames"][0])) > 1
