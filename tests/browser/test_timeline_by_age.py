"""Lifetimes stacked by age: the top is what is in use, and blocks are found where they have sunk to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser
from support.allocator_planes import Log
from support.browser.hosts import Host, open_demo, open_standalone
from support.browser.pages import new_context
from support.browser.viewer import Viewer, until
from support.payload_decoder import decode

from tb_memplugin.protos.xplane_pb2 import XSpace

RUN = "leak/cpu"
# Of one event or block, in pixels, to be sure to hit it.
LEAST_HIT = 6


@dataclass(frozen=True)
class Stack:
    """Rows of a recording in order of birth, as the API tells them."""

    start: list[int]
    end: list[int]
    charge: list[int]
    length: int

    def at(self, position: int) -> list[tuple[int, int, int]]:
        """(row, bottom, top) of what is live."""
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
def viewer(leaking: Host, browser: Browser) -> Iterator[Viewer]:
    context = new_context(browser)
    page = context.new_page()
    page.goto(leaking.address({"tab": "memory_profile", "run": RUN, "full": "true"}))
    viewer = Viewer(page).wait_until_ready()
    viewer.picture()
    yield viewer
    context.close()


@pytest.fixture(scope="module")
def stack(leaking: Host) -> Stack:
    listing = json.loads(leaking.server.get(f"{leaking.api}recordings?run={quote(RUN)}").body)
    (allocator,) = [one for one in listing["recordings"] if one["kind"] == "allocator"]
    _, tables = decode(leaking.server.get(f"{leaking.api}rows?id={quote(allocator['id'])}").body)
    rows = tables["rows"]
    start, end, charge = ([int(value) for value in rows[column]] for column in ("start", "end", "charge"))
    return Stack(start, end, charge, max(end))


def test_it_is_what_is_shown_first(viewer: Viewer) -> None:
    pressed = viewer.get("timeline-layout").locator("[aria-pressed=true]")
    assert pressed.inner_text() == "By age"
    assert "what is in use" in str(pressed.get_attribute("title"))


def test_the_top_is_what_is_in_use_at_every_event(viewer: Viewer, stack: Stack) -> None:
    # In each column of pixels: how many there are from the foot up to the first of the ground's colour, which a pixel
    # below the line along the top has where little is in use.
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
def test_a_block_is_hovered_and_selected_before_and_after_it_sinks(viewer: Viewer, stack: Stack, place: int) -> None:
    plot = viewer.plot()
    row, places = sinking(stack, plot.width, plot.height)
    position, bottom, top = places[place]
    across, down = (position + 0.5) / stack.length, 1 - (bottom + top) / 2 / max(stack.in_use())
    viewer.page.mouse.move(*plot.at(across, down))
    until(viewer.get("timeline").locator(".tooltip").count, bool, "nothing is under the pointer")
    viewer.page.mouse.down()
    viewer.page.mouse.up()
    viewer.wait_for_state(selected=str(row))


def test_the_stack_that_programs_reserve_is_a_block_too(browser: Browser, tmp_path: Path) -> None:
    mib = 2**20
    log = Log().add(False, 0, index_on_host=0, addr=mib, allocation_bytes=mib, bytes_allocated=mib, bytes_reserved=0)
    told = {"addr": 4 * mib, "allocation_bytes": mib, "bytes_allocated": 2 * mib, "bytes_reserved": 6 * mib}
    log.add(False, 1000, index_on_host=0, **told)
    folder = tmp_path / "logs" / "tpu" / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(XSpace(planes=[log.plane]).SerializeToString())
    with open_standalone(tmp_path / "logs", tmp_path) as host:
        context = new_context(browser)
        page = context.new_page()
        page.goto(host.address({"tab": "memory_profile", "run": "tpu/run"}))
        viewer = Viewer(page).wait_until_ready()
        viewer.picture()
        # At the second event two allocations, and six parts of eight above them.
        page.mouse.move(*viewer.plot().at(0.75, 0.5))
        tooltip = viewer.get("timeline").locator(".tooltip")
        until(tooltip.count, bool, "nothing is under the pointer")
        said = tooltip.inner_text()
        assert "stack, or unexplained by any allocation" in said and "6.00 MiB" in said
        page.mouse.move(*viewer.plot().at(0.75, 0.8))
        until(tooltip.inner_text, lambda text: "1.00 MiB" in text, "no allocation lies below it")
        page.mouse.click(*viewer.plot().at(0.75, 0.8))
        viewer.wait_for_state(selected="1")
        page.mouse.click(*viewer.plot().at(0.75, 0.5))
        viewer.wait_for_state(selected=None)
        context.close()


def sinking(stack: Stack, width: float, height: float) -> tuple[int, list[tuple[int, int, int]]]:
    """A row that lies at two heights at least its own apart, each at an event that it can be pointed at."""
    assert width / stack.length >= 2, "events are narrower than can be pointed at"
    least = max(stack.in_use()) * LEAST_HIT / height
    places: dict[int, list[tuple[int, int, int]]] = {}
    for position in range(stack.length):
        for row, bottom, top in stack.at(position):
            if top - bottom >= least:
                places.setdefault(row, []).append((position, bottom, top))
    for row, known in places.items():
        if known[0][1] - known[-1][2] >= 0:
            return row, [known[0], known[-1]]
    raise AssertionError("no row sinks by its own height")
