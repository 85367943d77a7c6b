"""The Fleet tab: a generated pod with planted faults as lines, heat map, histogram and table, and compared devices."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Route
from support.browser.axe import COLOR_RULES, violations
from support.browser.hosts import Host, open_demo, open_standalone, open_tensorboard, open_xprof
from support.browser.pages import checked_context, load
from support.browser.viewer import Viewer, until, until_held
from support.servers import BIN, DATA

from benchmarks.pods.pod import Pod
from benchmarks.pods.truth import Capture, Faults

pytestmark = pytest.mark.slow

FLEET = {"tab": "fleet"}
HOSTS, DEVICES = 12, 4
GPU_RUN = DATA / "xplane" / "xprof_demo_gpu_multi_worker" / "plugins" / "profile" / "GPU-multi-worker"
GPUS = GPU_RUN / "34.83.195.179_6003.xplane.pb"
FAULTS = Faults(outliers=2, leaks=1, missing=1, damaged=1)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleet") / "logs"


@pytest.fixture(scope="module")
def truth(logs: Path) -> Capture:
    return Pod(HOSTS, DEVICES, 0.5, skew_seconds=9, faults=FAULTS).write(logs)


@pytest.fixture(scope="module")
def server(logs: Path, truth: Capture) -> Iterator[Host]:
    with open_standalone(logs, logs.parent) as host:
        yield host


@pytest.fixture(scope="module")
def xprof(logs: Path, truth: Capture) -> Iterator[Host]:
    with open_xprof(logs, logs.parent) as host:
        yield host


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with checked_context(browser) as context:
        yield context


def opened(context: BrowserContext, host: Host, state: dict[str, str]) -> Viewer:
    page = context.new_page()
    page.goto(host.address(state))
    return Viewer(page).wait_until_ready()


@pytest.fixture
def fleet(server: Host, tab: Viewer) -> Viewer:
    return load(tab, server.address(FLEET))


def recording_id(truth: Capture, host: str, device: str) -> str:
    session = next(name for name, hosts in truth.sessions.items() if host in hosts)
    return f"{truth.run}/{session}|{host}|allocator|{device}"


def rows(viewer: Viewer) -> list[str]:
    """Return the visible lines of the table as texts, top to bottom."""
    read = """table => {
      const top = line => new DOMMatrix(getComputedStyle(line).transform).f;
      return [...table.querySelectorAll('.virtual-line')].sort((a, b) => top(a) - top(b)).map(line =>
        [...line.querySelectorAll('[role=gridcell]')].map(c => c.innerText).join('|'));
    }"""
    found: list[str] = viewer.get("fleet-devices").evaluate(read)
    return found


def color_at_frame(viewer: Viewer) -> list[int]:
    """Return the color in the middle of the selected cell."""
    read = """cells => {
      const canvas = cells.querySelector('canvas'), frame = cells.querySelector('.selected').getBoundingClientRect();
      const ratio = devicePixelRatio, box = canvas.getBoundingClientRect();
      const x = (frame.left + frame.width / 2 - box.left) * ratio, y = (frame.top + frame.height / 2 - box.top) * ratio;
      return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data];
    }"""
    found: list[int] = viewer.get("fleet-cells").evaluate(read)
    return found


def test_the_lines_are_those_of_the_terminal(fleet: Viewer, logs: Path) -> None:
    command = [str(BIN / "tb-memplugin"), "fleet", str(logs)]
    printed = " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert fleet.text("headline") in printed and "missing" in fleet.text("headline")
    terms = fleet.frame.locator("[data-testid=fleet-lines] > div")
    lines = [" ".join(text.replace("·", " ").split()) for text in terms.all_inner_texts()]
    assert [line.split()[0] for line in lines][:4] == ["joined", "worst", "because", "median"]
    for line in lines:
        assert line.replace("because ", "because: ") in printed.replace("·", " ").replace("  ", " ").replace("  ", " ")


def test_a_planted_outlier_stands_out_and_opens(server: Host, context: BrowserContext, truth: Capture) -> None:
    planted = truth.outliers[0]
    chosen = recording_id(truth, planted.host, planted.memory)
    fleet = opened(context, server, {**FLEET, "fleet_device": chosen})
    orange = color_at_frame(fleet)
    assert orange[0] > orange[2] + 60, "above the median is not orange"
    box = fleet.frame.locator(".fleet-cells .selected").bounding_box()
    assert box is not None
    fleet.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    said = fleet.frame.locator(".fleet-cells .tooltip").inner_text()
    assert planted.host in said and planted.memory in said and "above the median device" in said
    assert "because: checkpoint.py:88" in said
    fleet.page.mouse.down()
    fleet.page.mouse.up()
    fleet.wait_for_state(tab="memory_profile", host=planted.host, space=planted.memory)
    fleet.wait_until_ready()
    fleet.page.go_back()
    assert fleet.wait_for_state(tab="fleet")["fleet_device"] == chosen


def test_the_legend_has_what_occurs(fleet: Viewer, server: Host) -> None:
    names = fleet.text("fleet-legend")
    assert "outlier" in names and "missing host" in names and "unreadable host" in names
    fleet.get("fleet-color").get_by_role("button", name="Share of capacity").click()
    fleet.wait_for_state(fleet_color="capacity")
    assert "100%of capacity" in "".join(fleet.text("fleet-legend").split("\n"))


def test_arrows_go_from_device_to_device(fleet: Viewer, truth: Capture) -> None:
    cells, said = fleet.get("fleet-cells"), fleet.frame.locator("#fleet-cell")
    cells.focus()
    cells.press("Home")
    healthy = [f"t1v-n-5a3c91f2-w-{number}" for number in range(HOSTS)]
    first = next(host for host in healthy if host not in truth.missing and host not in truth.damaged)
    for _ in range(healthy.index(first)):
        cells.press("ArrowRight")
    assert (said.get_attribute("aria-label") or "").startswith(f"{first} TPU core 0")
    cells.press("ArrowRight")
    fleet.wait_for_state(fleet_device=recording_id(truth, first, "TPU core 1"))
    cells.press("Home")
    seen = set()
    for _ in range(DEVICES * HOSTS):
        seen.add((said.get_attribute("aria-label") or "").split(",")[1].strip())
        cells.press("ArrowRight")
    assert {"missing", "unreadable"} <= seen, "hosts without a device are skipped"
    cells.press("End")
    for _ in range(DEVICES * HOSTS):
        cells.press("ArrowLeft")
    for _ in range(healthy.index(first)):
        cells.press("ArrowRight")
    cells.press("Enter")
    fleet.wait_for_state(tab="memory_profile", host=first, space="TPU core 0")


def test_f_shows_the_heat_map_in_the_full_window(fleet: Viewer) -> None:
    fleet.assert_full_window("fleet-cells")


def test_a_bar_lists_its_devices(fleet: Viewer, truth: Capture) -> None:
    bars = fleet.get("fleet-bar")
    last = bars.last.bounding_box()
    assert last is not None and f"{len(truth.outliers)} devices" in (bars.last.get_attribute("aria-label") or "")
    fleet.page.mouse.click(last["x"] + last["width"] / 2, last["y"] + last["height"] / 2)
    fleet.get("fleet-range").wait_for()
    listed = until(lambda: rows(fleet), lambda found: len(found) == len(truth.outliers), "other devices")
    assert all(any(planted.host in row for row in listed) for planted in truth.outliers)
    fleet.frame.get_by_role("button", name="all peaks").click()
    fleet.wait_for_state(fleet_peaks=None)
    bars.first.focus()
    bars.first.press("Shift+ArrowRight")
    chosen = until(lambda: fleet.state().get("fleet_peaks", ""), bool, "no range in the address")
    low, high = map(float, chosen.split(","))
    expected = sum(low <= device.peak_bytes < high for device in truth.devices)
    summary = fleet.get("fleet-devices").locator(".toolbar-summary")
    until(summary.inner_text, lambda text: text.startswith(f"{expected} of"), "the range of two bars")


def test_the_table_is_searched_sorted_and_saved(fleet: Viewer, truth: Capture, tmp_path: Path) -> None:
    assert len(rows(fleet)) == len(truth.outliers)
    fleet.frame.get_by_label("all devices").check()
    fleet.wait_for_state(fleet_all="true")
    fleet.get("fleet-devices").get_by_role("button", name="Peak").click()
    fleet.get("fleet-devices").get_by_role("button", name="Peak").click()
    fleet.wait_for_state(sort="peak")
    fleet.get("fleet-devices").get_by_test_id("table-search").fill("w-11")
    until(lambda: len(rows(fleet)), lambda count: count == DEVICES, "the devices of one host")
    saved = tmp_path / "saved.csv"
    with fleet.page.expect_download() as download:
        fleet.get("fleet-devices").get_by_role("button", name="Save CSV").click()
    download.value.save_as(saved)
    found = list(csv.DictReader(io.StringIO(saved.read_text(), newline="")))
    peaks = sorted(device.peak_bytes for device in truth.devices if device.host.endswith("w-11"))
    assert [float(row["peak_bytes"]) for row in found] == peaks
    assert {row["growth"] != "" for row in found} == {any(leak.host.endswith("w-11") for leak in truth.leaks)}


def test_ticks_compare(fleet: Viewer, truth: Capture) -> None:
    ticks = fleet.get("fleet-tick")
    ticks.first.click()
    fleet.get("compare-median").click()
    state = fleet.wait_for_state(tab="compare")
    fleet.wait_until_ready()
    outliers = {recording_id(truth, planted.host, planted.memory) for planted in truth.outliers}
    assert state["b"] in outliers and state["a"] not in outliers
    assert "checkpoint.py:88" in fleet.text("headline")
    fleet.page.go_back()
    fleet.wait_for_state(tab="fleet")
    fleet.wait_until_ready()
    ticks.nth(0).click()
    ticks.nth(1).click()
    state = fleet.wait_for_state(tab="compare")
    assert {state["a"], state["b"]} == outliers


def test_progress_is_shown_while_files_are_read(server: Host, context: BrowserContext) -> None:
    page = context.new_page()
    running = {"value": True}

    def answer(route: object) -> None:
        found = route.fetch()  # type: ignore[attr-defined]
        body = found.body()
        if running["value"]:
            body = body.replace(b'"running": false', b'"running":  true').replace(
                b'"running":false', b'"running":true '
            )
        route.fulfill(response=found, body=body)  # type: ignore[attr-defined]

    page.route("**/api/fleet?*", answer)
    page.goto(server.address(FLEET))
    viewer = Viewer(page)
    viewer.get("fleet-reading").wait_for()
    assert "files" in viewer.text("fleet-reading")
    running["value"] = False
    viewer.wait_until_ready()
    assert viewer.get("fleet-reading").count() == 0


def test_nothing_is_inaccessible(fleet: Viewer) -> None:
    fleet.get("fleet-tick").first.click()
    assert violations(fleet) == []
    fleet.page.emulate_media(color_scheme="dark")
    fleet.frame.locator("html[data-theme=dark]").wait_for()
    assert violations(fleet, "html", COLOR_RULES) == []


def check_tab(context: BrowserContext, host: Host) -> None:
    viewer = opened(context, host, FLEET)
    assert f"{HOSTS - 1} hosts" in viewer.text("headline")
    peak = next(cell for cell in rows(viewer)[0].split("|") if cell.endswith(" GiB"))
    viewer.get("open-device").first.click()
    # XProf may replace the address and the frame once it has started, so the page says what is open.
    until(
        lambda: viewer.get("tab-memory_profile").get_attribute("aria-selected"),
        lambda selected: selected == "true",
        "another tab is open",
    )
    viewer.wait_until_ready()
    assert peak.partition(" ")[0] in viewer.text("headline")


@pytest.mark.usefixtures("truth")  # which writes the logs
def test_the_tab_is_in_tensorboard(logs: Path, context: BrowserContext) -> None:
    with open_tensorboard(logs, logs.parent) as host:
        check_tab(context, host)


def test_the_tab_is_in_xprof(xprof: Host, context: BrowserContext) -> None:
    check_tab(context, xprof)


def test_a_place_that_is_chosen_while_xprof_starts_stays(xprof: Host, context: BrowserContext) -> None:
    """XProf asks for the hosts of its default run. Where it learns of them later, it opened one of them."""
    held: list[Route] = []
    context.route(re.compile(r"profile/hosts"), lambda route: held.append(route))
    viewer = opened(context, xprof, FLEET)
    until_held(viewer.page, held)
    peak = next(cell for cell in rows(viewer)[0].split("|") if cell.endswith(" GiB"))
    viewer.get("open-device").first.click()
    viewer.wait_for_state(tab="memory_profile")
    context.unroute_all(behavior="ignoreErrors")
    for route in held:
        with suppress(Error):  # XProf has asked again meanwhile
            route.continue_()
    viewer.page.wait_for_timeout(2000)  # which XProf needs to go elsewhere
    viewer.wait_until_ready()
    assert viewer.get("tab-memory_profile").get_attribute("aria-selected") == "true"
    assert peak.partition(" ")[0] in viewer.text("headline")


@pytest.mark.skipif(not GPUS.exists(), reason="the real profiles are not beside the repository")
def test_real_gpus_and_the_memory_of_their_hosts(tmp_path: Path, context: BrowserContext) -> None:
    session = tmp_path / "logs/run/plugins/profile/2026_11_23_04_07_01"
    session.mkdir(parents=True)
    for number in range(6):
        shutil.copy(GPUS, session / f"host-{number}.xplane.pb")
    with open_standalone(tmp_path / "logs", tmp_path) as host:
        viewer = opened(context, host, FLEET)
        assert rows(viewer) == []
        viewer.get("fleet-memory").get_by_role("button", name="gpu_host_bfc").click()
        viewer.wait_for_state(fleet_memory="gpu_host_bfc")
        assert rows(viewer) == []
        viewer.frame.get_by_label("all devices").check()
        until(lambda: len(rows(viewer)), lambda count: count == 6, "the memory of each host")


def test_a_run_of_one_device_has_no_tab(tmp_path: Path, context: BrowserContext) -> None:
    with open_demo(tmp_path, "leak") as host:
        viewer = opened(context, host, {"tab": "overview"})
        assert viewer.get("tab-compare").count() == 1 and viewer.get("tab-fleet").count() == 0
