"""Memory Profile: curves, groups, holes, spans, call stacks, CSV files and a dragged timeline."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page
from support.browser.hosts import Host, open_standalone
from support.browser.logs import TRAIN
from support.browser.pages import load
from support.browser.viewer import Viewer, until
from support.payload_decoder import decode
from support.servers import DATA, DEMO

from benchmarks.generate_events import generate
from tb_memplugin.protos.xplane_pb2 import XSpace
from tb_memplugin.sizes import bytes_text

JOINED = DATA / "xplane" / "tracelens_mi300_conv_minimal_08"
EXECUTE = "PJRT_LoadedExecutable_Execute"
LEAK, SMALL, LARGE = "leak/cpu", "small/gpu", "large/gpu"
# Lanes shown at first, and threads of the generated profile.
LANES, OVERLAPPING = 6, 8


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("busy")
    logs = folder / "logs"
    write(logs / SMALL, overlapping(generate(6000, 2000)[0]))
    # More blocks than the page redraws in every frame.
    write(logs / LARGE, generate(80_000, 80_000)[0])
    for run in ("leak", "train_step"):
        shutil.copytree(DEMO / run, logs / run)
    with open_standalone(logs, folder) as host:
        yield host


def write(run: Path, space: XSpace) -> None:
    folder = run.parent / "plugins" / "profile" / run.name
    folder.mkdir(parents=True)
    (folder / "localhost.xplane.pb").write_bytes(space.SerializeToString())


def overlapping(space: XSpace) -> XSpace:
    """Return the profile with an execution on each thread that lasts for the whole profile."""
    plane = next(plane for plane in space.planes if plane.name == b"/host:CPU")
    execute = next(number for number, known in plane.event_metadata.items() if known.name == EXECUTE.encode())
    for line in plane.lines:
        line.events.add(metadata_id=execute, offset_ps=0, duration_ps=10**13)
    assert len(plane.lines) == OVERLAPPING
    return space


def open_run(tab: Viewer, host: Host, run: str, **state: str) -> Viewer:
    load(tab, host.address({"tab": "memory_profile", "run": run, **state})).picture()
    return tab


def rows_of(host: Host, run: str) -> dict[str, list[float]]:
    listing = json.loads(host.server.get(f"{host.api}recordings?run={quote(run)}").body)
    (allocator,) = [one for one in listing["recordings"] if one["kind"] == "allocator"]
    _, tables = decode(host.server.get(f"{host.api}rows?id={quote(allocator['id'])}").body)
    return dict(tables["rows"])


def test_curves_are_switched_in_the_legend_and_in_the_address(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, SMALL)
    read = "chart => chart.querySelector('canvas').toDataURL()"
    before = viewer.get("usage-chart").evaluate(read)
    free = viewer.get("curve-free")
    assert free.get_attribute("aria-pressed") == "false"
    free.click()
    viewer.wait_for_state(curves="free")
    assert free.get_attribute("aria-pressed") == "true"
    with_free = until(lambda: viewer.get("usage-chart").evaluate(read), before.__ne__, "no additional curve")
    viewer.page.reload()
    viewer.wait_until_ready()
    until(lambda: viewer.get("usage-chart").evaluate(read), with_free.__eq__, "a different chart after the reload")
    viewer.get("curve-free").click()
    viewer.wait_for_state(curves=None)


def test_a_brush_zooms_and_a_double_click_shows_all_again(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, SMALL)
    curve = viewer.curve()
    viewer.page.mouse.move(*curve.at(0.25, 0.5))
    viewer.page.mouse.down()
    viewer.page.mouse.move(*curve.at(0.75, 0.4), steps=5)
    viewer.page.mouse.up()
    zoom, yzoom = viewer.windows()
    assert zoom == pytest.approx([500, 1500], abs=4)
    assert yzoom == []
    plot = viewer.plot()
    viewer.page.mouse.move(*plot.at(0.5, 0.5))
    viewer.wheel(-400, "Alt")
    again, yzoom = viewer.windows()
    assert again == zoom
    assert len(yzoom) == 2
    viewer.page.mouse.move(*viewer.curve().at(0.5, 0.5))
    viewer.wheel(-400, "Alt")
    state = until(viewer.state, lambda state: "bytes" in state, "the curve is not zoomed along y")
    low, high = map(float, state["bytes"].split(","))
    assert 0 < low < high
    viewer.page.mouse.dblclick(*viewer.curve().at(0.5, 0.2))
    assert viewer.windows() == ([], yzoom)
    assert "bytes" not in viewer.state()


def test_keys_zoom_the_curve_along_y(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, SMALL)
    chart = viewer.get("usage-chart")
    chart.press("Alt++")
    low, high = map(float, until(viewer.state, lambda state: "bytes" in state, "no zoom")["bytes"].split(","))
    peak = float(viewer.figures()["live_peak"].replace(",", "").partition(" ")[0])
    # The y axis ends 6% above the peak, and the zoom shows its middle half.
    assert high - low == pytest.approx(peak * 1.06 / 2, rel=0.01)
    chart.press("0")
    viewer.wait_for_state(bytes=None)


def test_rows_are_grouped_by_the_step_that_allocated_them(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, LEAK, group="step")
    lines = viewer.get("group-line").all_inner_texts()
    assert any("train 0" in line for line in lines)
    assert any("train 23" in line for line in lines)
    # At the end, each step only has the block that it leaked.
    assert "1 allocation" in next(line for line in lines if "train 7" in line)
    headings = viewer.get("buffer-table").get_by_role("columnheader").all_inner_texts()
    assert "Step" in headings
    assert "Region" not in headings, "a column without a text in any row"


def test_sites_that_do_not_grow_are_folded(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, LEAK)
    growth, more = viewer.get("growth"), viewer.get("more-findings")
    until(more.count, bool, "nothing is folded away")
    assert "since the warm-up" not in growth.inner_text()
    more.locator("summary").click()
    assert "since the warm-up" in growth.inner_text()


def test_rows_are_grouped_by_call_stack_with_distinct_names(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, SMALL, group="stack")
    labels = viewer.get("group-line").evaluate_all("lines => lines.map(l => l.querySelector('.fold-label').title)")
    assert len(labels) == len(set(labels)) > 0
    assert all(" frame" in label for label in labels)


@pytest.mark.parametrize("run", [LEAK, SMALL])
def test_the_csv_adds_up_to_the_bytes_in_use_and_has_times(busy: Host, tab: Viewer, tmp_path: Path, run: str) -> None:
    viewer = open_run(tab, busy, run, group="none", below="buffers")
    saved = tmp_path / "allocations.csv"
    viewer.download("Save CSV").save_as(saved)
    lines = list(csv.DictReader(saved.read_text().splitlines()))
    total = sum(int(line["charge_bytes"]) for line in lines)
    peak = viewer.figures()["live_peak"]
    assert f"{total:,} bytes" == peak
    for line in lines:
        assert int(line["address"]) == int(line["region"]) + int(line["offset_bytes"])
        allocated, freed = line["allocated_at_ns"], line["freed_at_ns"]
        assert float(line["allocated_at_s"]) == pytest.approx(int(allocated) / 1e9)
        assert not freed or int(line["held_ns"]) == int(freed) - int(allocated)


def test_holes_are_listed_and_link_to_the_blocks_that_pin_them(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, SMALL, layout="address")
    rows = rows_of(busy, SMALL)
    position = int(viewer.text("inspected-position").replace(",", ""))
    live = [row for row, start in enumerate(rows["start"]) if start <= position < rows["end"][row]]
    live.sort(key=lambda row: rows["offset"][row])
    ends = [rows["offset"][row] + rows["size"][row] for row in live]
    gaps = sum(rows["offset"][after] > end for end, after in zip(ends, live[1:], strict=False))
    # The generated allocator uses increasing addresses, so the lowest may be free at this position.
    lowest = int(min(rows["offset"]) < rows["offset"][live[0]])
    viewer.get("holes").locator("summary").click()
    assert viewer.get("holes").inner_text().startswith(f"{gaps + lowest} hole")
    neighbor = viewer.get("hole").first.get_by_test_id("hole-neighbor").first
    name = neighbor.inner_text()
    neighbor.click()
    assert name.split(", ")[0] in viewer.details()
    state = until(viewer.state, lambda state: "selected" in state, "nothing is selected")
    assert int(state["selected"]) in live


def test_a_hovered_hole_shows_its_size_and_its_neighbors(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, SMALL, layout="address")
    plot, tooltip = viewer.plot(), viewer.get("timeline").locator(".timeline-foot > span")
    for down in range(5, 100, 5):
        viewer.page.mouse.move(*plot.at(0.5, down / 100))
        viewer.rest()
        if tooltip.count() and "Hole of" in tooltip.inner_text():
            break
    text = tooltip.inner_text()
    assert "Hole of" in text
    assert "below" in text
    assert "above" in text


def test_the_address_map_only_counts_addresses_that_were_used(busy: Host, tab: Viewer) -> None:
    """The arrays of a process can be terabytes apart."""
    rows, position = rows_of(busy, LEAK), 40
    reached = mapped = used = 0
    for row in sorted(range(len(rows["size"])), key=rows["offset"].__getitem__):
        offset, size = int(rows["offset"][row]), int(rows["size"][row])
        assert offset >= 0
        mapped += max(0, offset + size - max(reached, offset))
        reached = max(reached, offset + size)
        used += size if rows["start"][row] <= position < rows["end"][row] else 0
    viewer = open_run(tab, busy, LEAK, chart="address", position=str(position))
    use_text = f"{used / mapped:.0%} in use"
    address_map = viewer.get("address-map")
    until(
        lambda: address_map.count() and address_map.inner_text(),
        lambda text: use_text in str(text) and bytes_text(mapped) in str(text),
        f"not {use_text} of {bytes_text(mapped)}",
    )


def test_hidden_lanes_of_spans_are_counted_and_unfold(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, SMALL)
    spans, more = viewer.get("spans"), viewer.get("more-lanes")
    assert more.inner_text().startswith("+")
    tops = "spans => new Set([...spans.children].map(span => span.style.top)).size"
    assert spans.evaluate(tops) == LANES
    more.click()
    until(lambda: spans.evaluate(tops), lambda lanes: lanes >= OVERLAPPING, "still folded")
    assert more.inner_text() == "fewer lanes"


def test_details_show_the_call_stack_of_the_free(busy: Host, tab: Viewer) -> None:
    rows = rows_of(busy, SMALL)
    freed = next(row for row, end in enumerate(rows["end"]) if rows["start"][row] >= 0 and end < 2000)
    viewer = open_run(tab, busy, SMALL, selected=str(freed))
    assert "Freed at" in viewer.details()


@pytest.mark.skipif(not JOINED.exists(), reason="needs the profile of an AMD GPU")
def test_an_allocation_of_an_execution_links_to_its_program_and_buffers(tab: Viewer, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(JOINED, logs / "joined")
    with open_standalone(logs, tmp_path) as host:
        viewer = open_run(tab, host, "joined/run")
        until(viewer.get("executions").count, bool, "no programs are named")
        program = viewer.get("executions").get_by_test_id("program-link").first
        title = program.inner_text()
        viewer.get("table-group").select_option("none")
        viewer.get("buffer-row").filter(has_text="forward_3d_conv").first.click()
        assert f"Planned by {title}" in viewer.details()
        buffer = viewer.get("details").get_by_test_id("program-link").nth(1)
        name = buffer.inner_text()
        buffer.click()
        viewer.wait_for_state(tab="memory_viewer", module=title)
        viewer.wait_until_ready()
        assert name in viewer.details()


def test_each_kind_of_span_has_labeled_lanes(busy: Host, tab: Viewer) -> None:
    heads = open_run(tab, busy, LEAK).get("lane-heads").locator("span")
    until(heads.all_inner_texts, lambda heads: heads == ["steps", "executions"], "other lanes")


def test_spans_are_reached_by_keys(busy: Host, tab: Viewer) -> None:
    viewer = open_run(tab, busy, LEAK)
    first = viewer.get("spans").locator("button").first
    first.focus()
    for _ in range(3):
        viewer.page.keyboard.press("ArrowRight")
    viewer.page.keyboard.press("Enter")
    zoom, _ = viewer.windows()
    assert len(zoom) == 2


def test_a_run_without_events_has_one_reason_first(busy: Host, tab: Viewer) -> None:
    viewer = load(tab, busy.address({"tab": "memory_profile", "run": TRAIN}))
    assert viewer.get("reason").get_attribute("data-code") == "cpu_backend"
    others = viewer.get("no-events").locator("details")
    assert "Tracer level" not in viewer.text("no-events")
    others.locator("summary").click()
    assert "Tracer level" in viewer.text("no-events")
    assert "CPU backend" not in others.inner_text()


LISTEN = """
window.moved = 0;
window.Worker = class extends Worker {
  constructor(...parts) {
    super(...parts);
    this.addEventListener("message", ({ data }) => { if (data.picture?.rough) window.moved += 1; });
  }
};
"""


def test_a_dragged_timeline_looks_like_a_reload_of_its_address(busy: Host, page: Page) -> None:
    page.add_init_script(LISTEN)
    viewer = open_run(Viewer(page), busy, LARGE, zoom="20000.25,60000.75")
    start = viewer.picture()
    plot = viewer.plot()
    page.mouse.move(*plot.at(0.5, 0.5))
    page.mouse.down()
    for step in range(1, 25):
        page.mouse.move(*plot.at(0.5 - 0.011 * step, 0.5))
    page.mouse.up()
    viewer.page.mouse.move(1, 1)
    after = viewer.picture()
    assert after[0] != start[0]
    assert page.evaluate("moved") > 0, "every frame was redrawn from scratch"
    page.reload()
    viewer.wait_until_ready()
    viewer.assert_picture(after)
