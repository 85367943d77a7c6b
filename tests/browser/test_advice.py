"""Advice on lowering the peak, and pasted out-of-memory errors."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Route
from support.browser.hosts import Host, open_standalone
from support.browser.logs import HOSTILE, HOSTILE_MODULE, LARGEST, MARKUP, TRAIN
from support.browser.pages import load, new_context
from support.browser.viewer import Viewer, until
from support.servers import TESTS

OOM_TEXTS = TESTS / "data" / "oom_texts"
START = {"tab": "memory_viewer", "run": TRAIN, "module": LARGEST}


@pytest.fixture(scope="module")
def standalone(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("advice")
    shutil.copytree(logs, folder / "logs")
    with open_standalone(folder / "logs", folder) as host:
        yield host


@pytest.fixture
def shown(standalone: Host, tab: Viewer) -> Viewer:
    return load(tab, standalone.address(START))


def advice_of(host: Host, run: str = TRAIN, module: str = LARGEST) -> list[dict[str, Any]]:
    identifier = quote(f"{run}|localhost|{module}|HBM")
    answer: dict[str, Any] = json.loads(host.server.get(f"{host.api}advice?id={identifier}").body)
    found: list[dict[str, Any]] = answer["advice"]
    return found


def piece_of(text: str) -> dict[str, Any]:
    """Return a piece of advice with a text for its title, its sentence and its code."""
    piece = {"kind": "donation", "title": text, "sentence": text, "change": text, "bytes": 1, "saving_of": "peak"}
    piece |= {"before_bytes": 2, "after_bytes": 1, "saving_bytes": 1, "saving_at_most_bytes": 1, "rows": [[0, 0]]}
    return piece | {"rows_total": 1, "fits": False, "evidence": "simulated", "effort": "none", "cost": "none"}


def pieces(viewer: Viewer) -> list[str]:
    found = until(lambda: viewer.get("advice-piece").all_inner_texts(), bool, "no advice")
    return [str(text) for text in found]


def open_first(viewer: Viewer) -> None:
    pieces(viewer)
    viewer.get("advice-piece").first.click()


def test_each_change_is_a_line_with_its_saving_and_opens_to_its_reason_and_code(
    shown: Viewer, standalone: Host
) -> None:
    expected = advice_of(standalone)
    assert len(expected) > 1
    texts = pieces(shown)
    assert len(texts) == len(expected)
    for text, piece in zip(texts, expected, strict=True):
        assert piece["title"] in text and piece["cost"] in text and piece["effort"] in text
    exact = shown.get("advice").get_by_test_id("saving").evaluate_all("all => all.map(one => one.title)")
    assert [text.partition(":")[0] for text in exact] == [bounds(piece) for piece in expected]
    assert shown.get("advice-detail").count() == 0
    open_first(shown)
    detail = shown.get("advice-detail").inner_text()
    assert expected[0]["sentence"] in detail and expected[0]["change"] in detail
    shown.get("advice-piece").first.click()
    until(shown.get("advice-detail").count, lambda count: count == 0, "it stays open")


def bounds(piece: dict[str, Any]) -> str:
    """Return what is safe to count on, in bytes, and the most where that is another figure."""
    least, most = piece["saving_bytes"], piece["saving_at_most_bytes"]
    return f"{least:,} bytes" if least == most else f"{least:,} bytes, up to {most:,} bytes"


def test_advice_is_used_by_keyboard_sorted_and_searched(shown: Viewer, standalone: Host) -> None:
    expected = advice_of(standalone)
    pieces(shown)
    grid = shown.get("advice").get_by_role("grid")
    grid.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        grid.press(key)
    until(shown.get("advice-detail").count, lambda count: count == 1, "Enter opens nothing")
    assert expected[1]["sentence"] in shown.get("advice-detail").inner_text()
    shown.get("advice").get_by_role("button", name="Change", exact=True).click()
    titles = [text.partition("\n")[0] for text in pieces(shown)]
    assert titles == sorted(titles, key=str.lower)
    shown.get("advice").get_by_test_id("table-search").fill(expected[0]["title"])
    until(lambda: len(pieces(shown)), lambda count: count == 1, "not searched")


def test_the_change_is_copied_verbatim(shown: Viewer, standalone: Host) -> None:
    open_first(shown)
    shown.get("copy-change").first.click()
    copied = until(lambda: str(shown.frame.evaluate("navigator.clipboard.readText()")), bool, "nothing was copied")
    assert copied == advice_of(standalone)[0]["change"]


def test_the_buffers_of_a_piece_of_advice_filter_every_chart(shown: Viewer, standalone: Host) -> None:
    first = advice_of(standalone)[0]
    open_first(shown)
    before = shown.picture()
    shown.get("advice-rows").first.click()
    only = until(shown.state, lambda state: "only" in state, "no filter in the address")
    ranges = [part.split("-") for part in only["only"].removeprefix("rows:").split(",")]
    assert [[int(part[0]), int(part[-1])] for part in ranges] == first["rows"]
    until(lambda: shown.text("live-heading"), lambda text: re.match(r".* of .* live", text) is not None, "not filtered")
    assert shown.picture()[0] != before[0]
    shown.page.reload()
    shown.wait_until_ready()
    chip = until(lambda: shown.text("filter-chip"), bool, "the filter is gone")
    assert f"{first['rows_total']} chosen" in chip
    open_first(shown)
    shown.get("advice-rows").first.click()
    shown.wait_for_state(only=None)


def test_where_a_program_does_not_fit_the_changes_with_which_it_does_come_first(
    standalone: Host, browser: Browser
) -> None:
    context = new_context(browser)
    found = {"pieces": [0, 1], "after_bytes": 12 << 20, "fits": True, "evidence": "simulated"}
    answer = {"advice": [piece_of("Donate"), piece_of("Offload")], "peak_bytes": 20 << 20}
    answer |= {"limit_bytes": 16 << 20, "fits_with": found}
    context.route("**/api/advice?*", lambda route: route.fulfill(json=answer))
    page = context.new_page()
    page.goto(standalone.address(START))
    viewer = Viewer(page).wait_until_ready()
    text = until(lambda: viewer.text("fits-with"), bool, "no set")
    assert text == "Fits with Donate + Offload: 12.00 MiB of 16.00 MiB together, simulated"
    assert [line.split("\n")[3] for line in pieces(viewer)] == ["no", "no"]
    viewer.get("fits-with").get_by_role("button").click()
    until(viewer.get("advice-detail").count, lambda count: count == 2, "its pieces stay closed")
    context.close()


def test_a_program_without_advice_has_a_message(standalone: Host, browser: Browser) -> None:
    context = new_context(browser)

    def nothing(route: Route) -> None:
        route.fulfill(json={"advice": [], "peak_bytes": 1, "limit_bytes": None, "fits_with": None})

    context.route("**/api/advice?*", nothing)
    page = context.new_page()
    page.goto(standalone.address(START))
    viewer = Viewer(page).wait_until_ready()
    until(lambda: viewer.text("advice"), lambda text: "No known change would lower this peak" in text, "no message")
    context.close()


def test_the_page_does_not_wait_for_advice(standalone: Host, browser: Browser) -> None:
    context = new_context(browser)
    context.route("**/api/advice?*", lambda route: None)
    page = context.new_page()
    page.goto(standalone.address(START))
    viewer = Viewer(page).wait_until_ready()
    viewer.picture()
    assert len(viewer.table()) > 10
    assert viewer.get("advice").get_attribute("aria-busy") == "true"
    context.close()


def test_names_that_are_markup_stay_text(standalone: Host, browser: Browser) -> None:
    module = f"{HOSTILE_MODULE}(2)"
    context = new_context(browser)

    def hostile(route: Route) -> None:
        answer = {"advice": [piece_of(MARKUP)], "peak_bytes": 2, "limit_bytes": None, "fits_with": None}
        route.fulfill(json=answer)

    context.route("**/api/advice?*", hostile)
    page = context.new_page()
    page.goto(standalone.address({**START, "run": HOSTILE, "module": module}))
    viewer = Viewer(page).wait_until_ready()
    open_first(viewer)
    assert viewer.get("advice").inner_text().count(MARKUP) == 3
    assert page.evaluate("window.pwned") is None
    context.close()


def test_a_pasted_error_is_explained_and_opened(shown: Viewer) -> None:
    text = (OOM_TEXTS / "tpu_compile.txt").read_text()
    shown.get("paste").click()
    assert shown.get("paste-read").is_disabled()
    shown.get("paste-text").fill(text)
    shown.get("paste-read").click()
    answer = until(lambda: shown.get("paste-answer").all_inner_texts(), bool, "no answer")[0]
    assert "GiB" in answer
    shown.get("paste-open").click()
    state = until(shown.state, lambda state: state.get("run", "").startswith("pasted/"), "not its run")
    assert state["tab"] == "snapshots"
    shown.wait_until_ready()
    assert shown.get("paste-box").count() == 0
    # The pasted error is listed as a run.
    assert shown.get("run-picker").input_value() == state["run"]


def test_a_text_without_an_error_gets_a_message(shown: Viewer) -> None:
    shown.get("paste").click()
    shown.get("paste-text").fill("All is well.\n")
    shown.get("paste-text").press("Control+Enter")
    answer = until(lambda: shown.get("paste-answer").all_inner_texts(), bool, "no answer")[0]
    assert len(answer) > 20
    assert shown.get("paste-open").count() == 0
    shown.page.keyboard.press("Escape")
    until(shown.get("paste-box").count, lambda count: count == 0, "it stays open")


def test_a_file_dropped_on_the_page_is_read(shown: Viewer) -> None:
    text = (OOM_TEXTS / "bfc_tensorflow.txt").read_text()
    drop = """text => {
      const data = new DataTransfer();
      data.items.add(new File([text], 'job.log', { type: 'text/plain' }));
      const event = { dataTransfer: data, bubbles: true, cancelable: true };
      document.body.dispatchEvent(new DragEvent('drop', event));
    }"""
    shown.frame.evaluate(drop, text)
    until(lambda: shown.get("paste-open").count(), bool, "it was not read")
    assert shown.get("paste-text").input_value() == text.replace("\r\n", "\n")


def test_the_ledger_and_the_log_before_an_error_are_shown(shown: Viewer) -> None:
    log = (
        "INFO worker.py:266] model weights take 15.00GiB; non_torch_memory takes 0.25GiB; PyTorch activation peak "
        "memory takes 0.75GiB; the rest of the memory reserved for KV Cache is 2.00GiB.\nlast <b>words</b>\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.\n"
    )
    shown.get("paste").click()
    shown.get("paste-text").fill(log)
    shown.get("paste-read").click()
    shown.get("paste-open").click()
    until(lambda: shown.get("oom-lines").count(), bool, "no lines")
    assert "last <b>words</b>" in (shown.get("oom-lines").locator("pre").text_content() or "")
    assert "15.0 GiB" in shown.get("oom-holders").inner_text()
