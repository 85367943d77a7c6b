"""Ledgers of a watched job's device and host, peaks of its phases, and the leak in the Overview."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.browser.hosts import Host, open_standalone
from support.browser.pages import open_pages
from support.browser.viewer import Viewer, until
from support.watch_files import MIB, live_file, saw_tooth, watch_bytes

from tb_memplugin.readers.watch_layout import DeviceColumn

SAMPLES = 400


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a logdir with a device of 2 GiB that another process uses, too, and a host whose memory leaks."""
    private = [200 * MIB + row * MIB for row in range(SAMPLES)]
    flat = {"children": 100, "shm": 50, "shared": 30, "used": 900, "total": 4096}
    named = {("host", name): [size * MIB] * SAMPLES for name, size in flat.items()}
    named[("host", "private")] = private
    on_device = {"pool": 950, "own": 1100, "used": 1700, "total": 2048, "process python3 (7)": 500}
    named |= {("cuda:0", name): [size * MIB] * SAMPLES for name, size in on_device.items()}
    named |= {("cuda:0", f"phase {name}"): [size * MIB] * SAMPLES for name, size in (("rollout", 600), ("train", 900))}
    host = [{DeviceColumn.IN_USE: size + 150 * MIB, DeviceColumn.LIMIT: 1024 * MIB} for size in private]
    content = {"cuda:0": saw_tooth(SAMPLES), "host": host}
    steps = {at: at // 4 for at in range(0, SAMPLES, 4)}
    live_file(tmp_path).write_bytes(watch_bytes(content, named=named, steps=steps, finished=True))
    return tmp_path


@pytest.fixture
def host(logs: Path, tmp_path: Path) -> Iterator[Host]:
    with open_standalone(logs, tmp_path) as found:
        yield found


def rows(viewer: Viewer, testid: str, memory: str) -> dict[str, list[str]]:
    """Return the cells of a table by their first one, in order."""
    table = viewer.frame.locator(f"[data-testid=ledger][data-memory='{memory}'] [data-testid={testid}-row]")
    found = table.evaluate_all("all => all.map(row => [...row.children].map(each => each.innerText))")
    return {name.strip(): cells for name, *cells in found}


def test_device_and_host_are_ledgers_and_phases_have_peaks(host: Host, browser: Browser) -> None:
    with open_pages(host, browser, tab="memory_profile") as open_at:
        viewer = open_at()
        assert viewer.state().get("space", "") in ("", "cuda:0"), "the page opens at the device"
        until(lambda: len(rows(viewer, "ledger-holders", "host")), lambda count: count > 0, "no ledger of the host")
        until(lambda: len(rows(viewer, "ledger-holders", "cuda:0")), lambda count: count > 0, "no ledger of the GPU")
        assert list(rows(viewer, "ledger-holders", "cuda:0")) == [
            "Free", "Driver and other processes", "python3 (7)", "Outside of the allocator", "Cache", "Live",
        ]  # fmt: skip
        assert rows(viewer, "ledger-holders", "cuda:0")["python3 (7)"] == ["500 MiB", "24%", "500 MiB"]
        assert rows(viewer, "phases", "cuda:0") == {
            "train": ["900 MiB", "0 ns"],
            "rollout": ["600 MiB", "0 ns"],
        }
        assert rows(viewer, "ledger-holders", "host")["Private"][0] == "599 MiB"
        with viewer.page.expect_download() as saved:
            button = viewer.frame.locator("[data-testid=ledger][data-memory=host] [data-testid=ledger-holders] button")
            button.get_by_text("Save CSV").click()
        assert "Private,628097024," in saved.value.path().read_text()
        chart = viewer.frame.locator("[data-testid=ledger][data-memory=host] svg")
        chart.scroll_into_view_if_needed()
        chart.hover(position={"x": 80, "y": 60})
        until(
            lambda: rows(viewer, "ledger-holders", "host")["Private"][0],
            lambda text: text.startswith("20"),
            "the pointer does not choose the first moment",
        )


def test_the_overview_shows_the_leak(host: Host, browser: Browser) -> None:
    with open_pages(host, browser, tab="overview") as open_at:
        viewer = open_at()
        sentence = "grows by 4.00 MiB per step"
        assert sentence in viewer.text("headline")
        cells = viewer.get("recording-row").evaluate_all("all => all.map(row => row.innerText)")
        assert [sentence in text for text in cells] == [False, True]
