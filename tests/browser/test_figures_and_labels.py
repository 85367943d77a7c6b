"""Figures, labels, ticks, legends and columns: shown, shortened, filtered or left out."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from support.browser.hosts import Host, open_standalone
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open, new_context
from support.browser.viewer import Viewer, until
from support.servers import DEMO
from support.torch_training import Training

PROGRAM = {"tab": "memory_viewer", "run": TRAIN, "module": LARGEST}
LEAK, TORCH = {"tab": "memory_profile", "run": "leak/cpu"}, {"tab": "memory_profile", "run": "torch"}
MENDED = {
    "tab": "compare",
    "run": "leak/cpu",
    "a": "leak/cpu|localhost|allocator|cpu:0 live arrays",
    "b": "leak_mended/cpu|localhost|allocator|cpu:0 live arrays",
    "steps": "source",
}
# Records the horizontal extent of each text on a canvas that is part of the page.
RECORD_TEXTS = """(() => {
  window.drawnTexts = [];
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    const width = this.measureText(text).width;
    const start = { right: x - width, end: x - width, center: x - width / 2 }[this.textAlign] ?? x;
    const { a, e } = this.getTransform();
    if (this.canvas.isConnected) drawnTexts.push([text, a * start + e, a * (start + width) + e, this.canvas.width]);
    return draw.call(this, text, x, y, ...more);
  };
})()"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("figures")
    logs = folder / "logs"
    for run in ("train_step", "leak", "leak_mended"):
        shutil.copytree(DEMO / run, logs / run)
    (logs / "torch").mkdir()
    (logs / "torch" / "rank0.pickle").write_bytes(pickle.dumps(Training(6, clears=False).snapshot()))
    with open_standalone(logs, folder) as host:
        yield host


@pytest.fixture(scope="module")
def shown(demo: Host, browser: Browser) -> Iterator[Viewer]:
    context = new_context(browser)
    page = context.new_page()
    page.add_init_script(RECORD_TEXTS)
    page.goto(demo.address(PROGRAM))
    yield Viewer(page).wait_until_ready()
    context.close()


@pytest.fixture
def at(demo: Host, shown: Viewer) -> Open:
    """Return a function that changes the shared page's state."""

    def go(expected: str = "ready", **state: str) -> Viewer:
        shown.go(demo.address(state), expected)
        shown.rest()
        return shown

    return go


@pytest.mark.parametrize("state", [PROGRAM, LEAK, LEAK | {"axis": "time"}, TORCH | {"axis": "time"}])
def test_no_tick_is_cut_off_at_the_edge_of_a_canvas(at: Open, state: dict[str, str]) -> None:
    cut: list[str] = []
    viewer = at(**PROGRAM)
    for end in ("10", "20", "50", "100"):  # ticks at the right edge
        viewer.page.evaluate("drawnTexts.length = 0")
        at(**state, zoom=f"0,{end}").picture()
        ticks = [text for text in viewer.page.evaluate("drawnTexts") if text[0][:1].isdigit()]
        assert len(ticks) > 5
        cut += [f"{end}: {text}" for text, left, right, width in ticks if left < -0.5 or right > width + 0.5]
    assert cut == []


def test_figures_that_are_zero_or_unknown_are_left_out(at: Open) -> None:
    for state in (PROGRAM, LEAK, TORCH):
        figures = at(**state).figures()
        assert figures and not {"", "0 bytes"} & set(figures.values())


@pytest.mark.parametrize("width", [400, 1400])
def test_labels_of_the_waterfall_are_whole(at: Open, width: int) -> None:
    viewer = at(**MENDED)
    viewer.page.set_viewport_size({"width": width, "height": 900})
    labels = viewer.frame.locator(".waterfall .label")
    cut = "label => label.scrollWidth > label.clientWidth || label.scrollHeight > label.clientHeight"
    found = labels.evaluate_all(f"labels => labels.map(label => [label.textContent, ({cut})(label)])")
    viewer.page.set_viewport_size({"width": 1400, "height": 1200})
    assert len(found) > 2
    assert not any(is_cut for _, is_cut in found), found
    assert len({text for text, _ in found}) == len(found)


def test_a_click_on_a_role_restricts_all_charts_and_the_url(at: Open) -> None:
    viewer = at(**PROGRAM)
    every = viewer.picture()
    button = viewer.frame.locator(".categories").get_by_test_id("role-temporary")
    for _ in range(2):
        button.click()
        viewer.wait_for_state(only="roles:temporary")
        assert button.get_attribute("aria-pressed") == "true"
        until(lambda: {row["Role"] for row in viewer.table()}, lambda found: found == {"temporary"}, "other roles")
        assert " of " in viewer.text("live-heading")
        assert viewer.picture() != every  # the others are dimmed
        other = viewer.frame.locator(".categories").get_by_test_id("role-parameter")
        assert "MiB" in other.inner_text(), "its figure is gone"
        other.click()
        viewer.wait_for_state(only="roles:parameter,temporary")
        other.click()
        button.click()
        viewer.wait_for_state(only=None)
    viewer.assert_picture(every)


def test_columns_that_are_the_same_in_all_rows_are_one_line(at: Open) -> None:
    viewer = at(tab="overview", run=TRAIN)
    headings = viewer.frame.get_by_role("columnheader").all_inner_texts()
    assert "Memory" not in headings and "Host" not in headings
    assert viewer.text("constant-columns") == "Same in all rows: Memory HBM, Host localhost"
    rows = [row.keys() for row in at(**LEAK, group="none").table()]
    assert rows and "Requested" not in rows[0]
    # Requested bytes that are those of the size say nothing, not even once.
    assert "Requested" not in viewer.text("constant-columns")
