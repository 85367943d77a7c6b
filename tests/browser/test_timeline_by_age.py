"""Blocks stacked by age: the top edge is the bytes in use, and blocks are selectable after they move down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Route
from support.allocator_planes import Log
from support.browser.hosts import Host, open_demo, open_standalone
from support.browser.pages import load, new_context
from support.browser.viewer import Viewer, until
from support.payload_decoder import decode

from benchmarks import generate_events
from tb_memplugin.protos.xplane_pb2 import XSpace

RUN = "leak/cpu"
# Smallest block in CSS pixels that the pointer hits reliably.
MIN_HIT = 6


COUNT_PICTURES = """() => {
  window.drawn = 0;
  CanvasRenderingContext2D.prototype.putImageData = function () {
    if (this.canvas.dataset.testid === "timeline-picture") window.drawn++;
  };
}"""


@dataclass(frozen=True)
class Stack:
    """Rows of a recording in order of allocation, from the API's tables."""

    start: list[int]
    end: list[int]
    charge: list[int]
    length: int

    def at(self, position: int) -> list[tuple[int, int, int]]:
        """Return (row, bottom, top) of each live row."""
        live = [row for row, start in enumerate(self.start) if start <= position < self.end[row] and self.charge[row]]
        live.sort(key=lambda row: (self.start[row], row))
        found, bottom = [], 0
        for row in live:
            found.append((row, bottom, bottom + self.charge[row]))
            bottom += self.charge[row]
        return found

    def in_use(self) -> list[int]:
        return [max((top for *_, top in self.at(position)), default=0) for position in range(self.length)]


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with open_demo(tmp_path_factory.mktemp("by_age"), "leak") as host:
        yield host


@pytest.fixture
def viewer(leaking: Host, tab: Viewer) -> Viewer:
    load(tab, leaking.address({"tab": "memory_profile", "run": RUN, "full": "true"})).picture()
    return tab


@pytest.fixture(scope="module")
def stack(leaking: Host) -> Stack:
    listing = json.loads(leaking.server.get(f"{leaking.api}recordings?run={quote(RUN)}").body)
    (allocator,) = [one for one in listing["recordings"] if one["kind"] == "allocator"]
    _, tables = decode(leaking.server.get(f"{leaking.api}rows?id={quote(allocator['id'])}").body)
    rows = tables["rows"]
    start, end, charge = ([int(value) for value in rows[column]] for column in ("start", "end", "charge"))
    return Stack(start, end, charge, max(end))


def test_by_age_is_the_default_layout(viewer: Viewer) -> None:
    layout = viewer.get("timeline-layout")
    assert layout.input_value() == "age"
    assert "memory in use" in str(layout.get_attribute("title"))


def test_the_top_edge_is_the_bytes_in_use_at_every_event(viewer: Viewer, stack: Stack) -> None:
    # Height of each column of pixels up to the first pixel in the background color, which is read at the emptiest event
    # just below the line along the top.
    read = """([column, row]) => {
      const canvas = document.querySelector('[data-testid=timeline-picture]');
      const { width, height } = canvas;
      const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
      const pixels = new Uint32Array(data.buffer);
      const ground = pixels[row * width + Math.floor(column * width)];
      return [height, ...Array.from({ length: width }, (_, x) => {
        let y = height;
        while (y > 0 && pixels[(y - 1) * width + x] !== ground) y--;
        return height - y;
      })];
    }"""
    in_use = stack.in_use()
    emptiest = min(range(stack.length), key=in_use.__getitem__)
    height, *tops = viewer.frame.evaluate(read, [(emptiest + 0.5) / stack.length, 3])
    width = len(tops)
    for x, top in enumerate(tops):
        first, last = int(x * stack.length / width), -int(-(x + 1) * stack.length // width)
        wanted = max(in_use[first:last]) / max(in_use) * height
        assert top == pytest.approx(wanted, abs=1), f"column {x}, events {first} to {last}"


@pytest.mark.parametrize("place", [0, 1], ids=["before", "after"])
def test_a_block_is_hovered_and_selected_after_it_moves_down(viewer: Viewer, stack: Stack, place: int) -> None:
    plot = viewer.plot()
    row, places = find_moving_row(stack, plot.width, plot.height)
    position, bottom, top = places[place]
    across, down = (position + 0.5) / stack.length, 1 - (bottom + top) / 2 / max(stack.in_use())
    viewer.page.mouse.move(*plot.at(across, down))
    until(viewer.get("under-pointer").count, bool, "nothing is under the pointer")
    viewer.page.mouse.down()
    viewer.page.mouse.up()
    viewer.wait_for_state(selected=str(row))


def test_the_memory_that_programs_reserve_is_a_block_too(browser: Browser, tmp_path: Path) -> None:
    mib = 2**20
    log = Log().add(False, 0, index_on_host=0, addr=mib, allocation_bytes=mib, bytes_allocated=mib, bytes_reserved=0)
    second = {"addr": 4 * mib, "allocation_bytes": mib, "bytes_allocated": 2 * mib, "bytes_reserved": 6 * mib}
    log.add(False, 1000, index_on_host=0, **second)
    folder = tmp_path / "logs" / "tpu" / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(XSpace(planes=[log.plane]).SerializeToString())
    with open_standalone(tmp_path / "logs", tmp_path) as host:
        context = new_context(browser)
        page = context.new_page()
        page.goto(host.address({"tab": "memory_profile", "run": "tpu/run"}))
        viewer = Viewer(page).wait_until_ready()
        viewer.picture()
        # At the second event, two allocations of 1 MiB are below 6 MiB of reserved memory.
        page.mouse.move(*viewer.plot().at(0.75, 0.5))
        tooltip = viewer.get("timeline").locator(".timeline-foot > span")
        text = until(tooltip.inner_text, lambda text: "stack" in text, "nothing is under the pointer")
        assert "stack, or unexplained by any allocation" in text and "6.00 MiB" in text
        page.mouse.move(*viewer.plot().at(0.75, 0.8))
        until(tooltip.inner_text, lambda text: "1.00 MiB" in text, "no allocation below the reserved memory")
        page.mouse.click(*viewer.plot().at(0.75, 0.8))
        viewer.wait_for_state(selected="1")
        page.mouse.click(*viewer.plot().at(0.75, 0.5))
        viewer.wait_for_state(selected=None)
        context.close()


@pytest.mark.parametrize("layout", ["age", "stacked"])
def test_many_allocations_are_drawn_before_their_names_have_come(browser: Browser, tmp_path: Path, layout: str) -> None:
    space, _ = generate_events.generate(50_000, 50_000)
    folder = tmp_path / "logs" / "many" / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(space.SerializeToString())
    with open_standalone(tmp_path / "logs", tmp_path) as host:
        context = new_context(browser)
        page = context.new_page()
        held: list[Route] = []
        page.route("**/api/rows*", lambda route: held.append(route))
        page.goto(host.address({"tab": "memory_profile", "run": "many/run", "layout": layout}))
        viewer = Viewer(page)
        picture = viewer.get("timeline-picture")
        until(lambda: (picture.get_attribute("aria-busy"), len(held)), lambda seen: seen == ("false", 1), "no picture")
        assert page.evaluate("document.documentElement.dataset.state") == "loading"
        before = viewer.picture()
        page.evaluate(COUNT_PICTURES)
        held.pop().continue_()
        viewer.wait_until_ready()
        viewer.assert_picture(before)
        assert page.evaluate("drawn") == 0, "the same blocks were drawn again"
        context.close()


def find_moving_row(stack: Stack, width: float, height: float) -> tuple[int, list[tuple[int, int, int]]]:
    """Return a row that moves down by at least its height, with its first and last (event, bottom, top)."""
    assert width / stack.length >= 2, "events are too narrow for the pointer"
    least = max(stack.in_use()) * MIN_HIT / height
    places: dict[int, list[tuple[int, int, int]]] = {}
    for position in range(stack.length):
        for row, bottom, top in stack.at(position):
            if top - bottom >= least:
                places.setdefault(row, []).append((position, bottom, top))
    for row, known in places.items():
        if known[0][1] - known[-1][2] >= 0:
            return row, [known[0], known[-1]]
    raise AssertionError("no row moves down by its own height")
