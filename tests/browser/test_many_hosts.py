"""Runs of several hosts, and sentences that name lines, leaks and programs that ran."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.browser.hosts import Host, open_standalone
from support.browser.logs import LARGEST, SMALL
from support.browser.pages import new_context
from support.browser.viewer import Viewer, until
from support.servers import DATA, DEMO

HOSTS = [f"host{i}" for i in range(10)]
TPU = DATA / "xplane" / "xprof_tpu_inference_2_old" / "plugins" / "profile" / "run" / "host.xplane.pb"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    logs = tmp_path_factory.mktemp("many_hosts")
    step = (DEMO / "train_step/plugins/profile/cpu/localhost.xplane.pb").read_bytes()
    for host in HOSTS:
        write(logs, "now", host, step)
    for old in ("host3", "host0"):
        os.utime(write(logs, "before", old, step), (1_700_000_000, 1_700_000_000))
    write(logs, "leak", "localhost", (DEMO / "leak/plugins/profile/cpu/localhost.xplane.pb").read_bytes())
    if TPU.exists():
        write(logs, "tpu", "host", TPU.read_bytes())
    with open_standalone(logs, logs.parent) as opened:
        yield opened


def write(logs: Path, run: str, host: str, content: bytes) -> Path:
    path = logs / run / "plugins" / "profile" / "session" / f"{host}.xplane.pb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def viewer(server: Host, browser: Browser) -> Iterator[Viewer]:
    context = new_context(browser)
    page = context.new_page()
    page.goto(server.address({"tab": "overview", "run": "now/session"}))
    yield Viewer(page).wait_until_ready()
    context.close()


def test_equal_programs_of_equal_hosts_are_one_row(viewer: Viewer, server: Host) -> None:
    viewer.go(server.address({"tab": "overview", "run": "now/session"}))
    rows = viewer.get("recording-row")
    assert [text.split("\n")[0] for text in rows.all_inner_texts()] == [f"{LARGEST} \u00d710", f"{SMALL} \u00d710"]
    assert viewer.get("co-residency").count() == 1
    assert "10 equal hosts" in viewer.text("co-residency")
    viewer.frame.get_by_label("each host").check()
    viewer.wait_for_state(each_host="true")
    until(rows.count, lambda count: count >= 10, "rows of each host")


def test_another_run_is_compared_before_another_host(viewer: Viewer, server: Host) -> None:
    viewer.go(server.address({"tab": "compare", "run": "now/session"}))
    state = viewer.wait_for_state(b=f"now/session|host0|{LARGEST}|HBM")
    assert state["a"] == f"before/session|host0|{LARGEST}|HBM"
    viewer.go(server.address({"tab": "compare", "run": "before/session"}))
    state = viewer.wait_for_state(a=f"before/session|host0|{LARGEST}|HBM")
    assert state["b"] == f"now/session|host0|{LARGEST}|HBM", "the oldest run is compared with a later one"


def test_headlines_name_the_line_and_the_leak(viewer: Viewer, server: Host) -> None:
    viewer.go(server.address({"run": "now/session"}))
    assert "make_demo.py:86" in viewer.headline()
    viewer.go(server.address({"tab": "memory_profile", "run": "leak/session"}))
    said = "Leak: make_leak_demo.py:61 grows 2.00 MiB per step"
    until(lambda: viewer.text("headline"), lambda text: said in text, "no leak in the headline")


@pytest.mark.skipif(not TPU.exists(), reason="the real profiles are not beside the repository")
def test_the_stack_of_a_tpu_opens_the_program_that_it_holds(viewer: Viewer, server: Host) -> None:
    viewer.go(server.address({"tab": "memory_profile", "run": "tpu/session"}))
    until(
        lambda: viewer.text("stack-of-program"), lambda text: text.startswith("20.0 GiB stack = temporaries"), "stack"
    )
    assert "ran 100 times" in viewer.text("executions")
    viewer.get("stack-of-program").get_by_role("button").click()
    viewer.wait_for_state(tab="memory_viewer", module="jit_f(12190760917235803885)", space="HBM")
