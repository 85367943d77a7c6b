"""Out-of-memory errors: pasted in every host, and read from files beside the profiles."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from support.browser.hosts import Host, open_standalone
from support.browser.pages import Open, new_context
from support.browser.viewer import Viewer, until
from support.servers import TESTS

TEXTS = TESTS / "data" / "oom_texts"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("errors")
    logs = folder / "logs" / "errors"
    logs.mkdir(parents=True)
    for text in TEXTS.glob("*.txt"):
        shutil.copy(text, logs / f"{text.stem}.oom.txt")
    with open_standalone(folder / "logs", folder) as host:
        yield host


@pytest.fixture(scope="module")
def page(files: Host, browser: Browser) -> Iterator[Viewer]:
    context = new_context(browser)
    yield Viewer(context.new_page())
    context.close()


def show(page: Viewer, files: Host, name: str) -> Viewer:
    page.page.goto("about:blank")
    page.page.goto(files.address({"tab": "snapshots", "run": "errors", "host": name}))
    return page.wait_until_ready()


def test_a_pasted_error_is_explained_and_shown(go_to: Open, host: Host) -> None:
    """Every host's server accepts POST requests from our page."""
    viewer = go_to(tab="overview")
    viewer.get("paste").click()
    viewer.get("paste-text").fill((TEXTS / "tpu_compile.txt").read_text())
    viewer.get("paste-read").click()
    viewer.get("paste-open").wait_for()
    assert "The program needs 19.3 GiB of HBM, which has 15.8 GiB." in viewer.text("paste-answer")
    viewer.get("paste-open").click()
    viewer.get("oom-hints").wait_for()
    viewer.wait_until_ready()
    assert viewer.state()["run"].startswith("pasted/")
    assert viewer.text("headline") == (
        "The program needs 19.3 GiB of HBM, which has 15.8 GiB. That is 3.50 GiB too much."
    )
    runs = json.loads(host.server.get(f"{host.api}runs").text)["runs"]
    assert any(run["name"].startswith("pasted/") for run in runs)


def test_an_address_of_a_pasted_error_shows_it_again(viewer: Viewer, host: Host) -> None:
    text = (TEXTS / "bfc_old.txt").read_text()
    answer = viewer.frame.evaluate(
        "text => fetch('api/paste', {method: 'POST', body: text}).then(answer => answer.json())", text
    )
    viewer.go(host.address({"tab": "snapshots", "run": answer["run"]}))
    viewer.get("oom-hints").wait_for()
    assert viewer.text("headline").startswith("An allocation of 3.00 KiB in GPU_0_bfc failed")


def test_figures_and_unlisted_bytes(page: Viewer, files: Host) -> None:
    show(page, files, "tpu_compile")
    figures = page.figures()
    assert figures["live_peak"] == figures["asked"] == "20,669,530,112 bytes"
    assert figures["missing"] == "3,758,096,384 bytes"  # 3.50 GiB
    assert page.text("live-heading") == "19.3 GiB needed: 17.0 GiB in 6 buffers, 2.23 GiB not listed by the text"
    assert "not listed" in page.text("unexplained") and "2.23 GiB" in page.text("unexplained")
    assert page.get("address-map").count() == 0  # the text has no addresses


def test_chunks_are_drawn_by_address(page: Viewer, files: Host) -> None:
    show(page, files, "bfc_tensorflow")
    segments = page.get("segment")
    assert segments.count() == 5
    assert "The largest hole is 3.97 MiB; 32.0 MiB was requested." in page.text("address-map")
    strip = segments.nth(3).locator("canvas")  # 1 MiB in use, 1 in use, 1 free, 1 in use
    box = strip.bounding_box()
    assert box is not None
    tooltips = []
    for quarter in range(4):
        page.page.mouse.move(box["x"] + box["width"] * (quarter + 0.5) / 4, box["y"] + 10)
        tooltips.append(page.frame.locator(".segment .tooltip b").inner_text())
    assert tooltips == ["1.00 MiB in use", "1.00 MiB in use", "1.00 MiB free", "1.00 MiB in use"]
    page.page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 10)
    # The fourth segment begins at 7f66319f9040, its last chunk 3 MiB later.
    details = page.details()
    assert "0x7f6631cf9040" in details and "Defined" not in details and "Shares its memory" not in details


def test_an_error_without_buffers_has_a_recipe_in_place_of_an_empty_table(page: Viewer, files: Host) -> None:
    show(page, files, "tpu_v5e_hbm")
    page.get("oom-recipe").wait_for()
    assert "XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'" in page.text("oom-recipe")
    assert page.get("live-heading").count() == page.get("buffer-table").count() == 0
    assert "0 buffers" not in page.frame.locator("main").inner_text()
    page.get("copy-recipe").click()
    page.get("oom-recipe").get_by_text("Copied").wait_for()


def test_keys_step_through_chunks(page: Viewer, files: Host) -> None:
    show(page, files, "bfc_old")
    segment = page.get("segment")
    segment.focus()

    def chosen() -> str:
        fragment: str = page.frame.evaluate("location.hash")
        return fragment.partition("selected=")[2]

    steps = {"Home": "0", "ArrowRight": "1", "End": "2", "ArrowLeft": "1"}
    for key, row in steps.items():
        segment.press(key)
        until(chosen, row.__eq__, key)


def test_an_error_without_a_list_of_buffers_has_its_cause(page: Viewer, files: Host) -> None:
    show(page, files, "onnxruntime")
    assert "16.0 MiB more must be free" in page.text("headline")
    assert page.get("live-heading").count() == 0
    assert set(page.figures()) >= {"asked", "missing", "free"} and "listed" not in page.figures()
