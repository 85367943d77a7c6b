"""Memory Viewer: how to open it in every host, and its figures, pickers, usage chart and table."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator
from support.browser.expected import Recording, recording
from support.browser.hosts import Host, in_host
from support.browser.logs import DAMAGED, HOSTILE, LARGEST, REMAT, SMALL, TRAIN
from support.browser.pages import Open
from support.browser.viewer import Viewer, until

from tb_memplugin.questions.kinds.verdict import verdict_text

SMALL_BYTES = 16 * 1024  # the table folds smaller rows into one line


def figures_of(expected: Recording) -> dict[str, str]:
    known = [figure for figure in expected.meta["figures"] if figure["bytes"]]
    return {figure["key"]: f"{int(figure['bytes']):,} bytes" for figure in known}


def test_by_hand_from_the_hosts_front_page(host: Host, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(host.server.url)
    if host.name == "tensorboard":
        # TensorBoard opens the plugin that is found first: XProf's replaces the whole address once it has loaded.
        if page.get_by_role("tab").first.inner_text().lower() == "profile":
            page.wait_for_url("**firstLoad=true*", wait_until="commit")
        page.get_by_role("tab", name="Memory").click()
    if host.name == "xprof":
        page.get_by_role("combobox").filter(has_text="Overview Page").click()
        page.get_by_role("option", name="Memory Viewer").click()
    viewer = Viewer(page).wait_until_ready()
    if host.name != "xprof":  # XProf's list of tools contains our tabs
        viewer.get("tab-memory_viewer").click()
        viewer.wait_for_state(tab="memory_viewer", module=LARGEST)
        viewer.wait_until_ready()
    expected = recording(host)
    assert viewer.headline() == verdict_text(expected.meta["verdict"])
    assert viewer.figures() == figures_of(expected)
    assert viewer.get("module-picker").input_value() == LARGEST


def test_another_module_and_another_run(viewer: Viewer, host: Host) -> None:
    viewer.pick("module-picker", "loss", SMALL)
    small = recording(host, TRAIN, SMALL)
    until(viewer.headline, lambda text: text == verdict_text(small.meta["verdict"]), "the headline")
    assert viewer.figures() == figures_of(small)
    if host.name == "xprof":
        return  # its sidebar picks the run: test_xprof.py
    viewer.pick("run-picker", "remat", REMAT)
    # A new run starts at its largest module.
    until(viewer.figures, lambda figures: figures == figures_of(recording(host, REMAT, LARGEST)), "the figures")
    viewer.wait_for_state(run=REMAT, module=LARGEST)
    viewer.page.reload()
    viewer.wait_until_ready()
    assert viewer.figures() == figures_of(recording(host, REMAT, LARGEST))


@in_host("tensorboard")
def test_a_picker_filters_by_typed_text_and_escape_cancels(viewer: Viewer) -> None:
    picker = viewer.get("module-picker")
    picker.click()
    assert viewer.options().count() == 2
    picker.fill("no such module")
    assert viewer.options().count() == 0
    picker.press("Escape")
    assert picker.input_value() == LARGEST


@in_host("standalone")
def test_the_run_picker_has_dates_and_known_peaks_and_takes_words_in_any_order(viewer: Viewer) -> None:
    picker = viewer.get("run-picker")
    picker.click()
    listed = (TRAIN, REMAT, "oom/cpu", HOSTILE, DAMAGED)  # newest first; other tests may have pasted further runs
    # A run that another test has pasted may have no date and no size, and so no second line.
    options = [text.partition("\n") for text in viewer.options().all_inner_texts()]
    details = {name: detail for name, _, detail in options}
    assert tuple(name for name in details if name in listed) == listed
    assert details[TRAIN] == "756 MiB · Jan 9, 12:34"
    assert details[DAMAGED].startswith("2 hosts · ")
    picker.fill("cpu  REMAT")
    assert viewer.options().all_inner_texts()[0].startswith(REMAT)
    picker.press("Escape")
    assert picker.input_value() == TRAIN


@in_host("xprof")
def test_a_click_on_the_curve_inspects_that_position(viewer: Viewer, host: Host) -> None:
    expected = recording(host)
    assert int(viewer.text("inspected-position")) == expected.peak
    before = picture_of(viewer)
    for position in (expected.length // 4, expected.length - 2):
        x, y = viewer.curve().at((position + 0.5) / expected.length, 0.5)
        # Browsers report clicks in whole pixels; a position may be little wider than one.
        viewer.page.mouse.click(round(x), y)
        check_position(viewer, position)
        check_table(viewer, expected, position)
        assert picture_of(viewer) != before
    viewer.wait_for_state(position=str(expected.length - 2))


def picture_of(viewer: Viewer) -> str:
    return str(viewer.get("flame-graph").locator("canvas").evaluate("canvas => canvas.toDataURL()"))


def check_position(viewer: Viewer, position: int) -> None:
    until(lambda: viewer.text("inspected-position"), lambda text: text == str(position), f"not at {position}")


def check_table(viewer: Viewer, expected: Recording, position: int) -> None:
    """Check that the table shows the rows that are live in the API's tables."""
    live = expected.live(position)
    rows = expected.rows
    content = copied_rows(viewer)
    found = sorted((row["name"], int(row["size_bytes"]), int(row["defined_at"])) for row in content)
    assert found == sorted((rows["name"][row], int(rows["size"][row]), rows["defined"][row]) for row in live)
    assert sum(int(row["size_bytes"]) for row in content) == expected.bytes_of(live)
    assert f"{len(live):,} of {len(live):,} buffers" in viewer.get("buffer-table").get_by_role("status").inner_text()


def copied_rows(viewer: Viewer) -> list[dict[str, str]]:
    """Return the table from the clipboard."""
    viewer.get("buffer-table")
    viewer.frame.evaluate("navigator.clipboard.writeText('')")
    viewer.frame.get_by_role("button", name=re.compile("^Cop(y CSV|ied)")).click()
    text = until(
        lambda: str(viewer.frame.evaluate("navigator.clipboard.readText()")), bool, "the clipboard stays empty"
    )
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def at_peak(open_at: Open) -> Viewer:
    """Return a page of its own, for state that is not in the address."""
    return open_at(run=TRAIN, module=LARGEST, group="none")


# Nothing is padded on CPU: the columns "Unpadded" and "Exp." are the same in all rows, and left out.
NUMBERS = ("Size", "Defined", "Last used")
TEXTS = ("Name", "Role", "Shape", "Op", "Op name", "Source")


@in_host("standalone")
def test_every_column_sorts(at_peak: Viewer) -> None:
    for heading in (*NUMBERS, *TEXTS):
        for order in ORDERS[sort_of(at_peak, heading), heading in NUMBERS]:
            sort_by(at_peak, heading, order)
            rows = at_peak.table()
            assert len(rows) > 10
            if heading in NUMBERS:
                check_numbers(rows, heading, order)
            else:
                check_texts(at_peak, rows, heading, order)


# Orders after one and two clicks on a heading, by its previous order and whether it is numeric.
ORDERS = {
    ("none", True): ("descending", "ascending"),
    ("none", False): ("ascending", "descending"),
    ("descending", True): ("ascending", "descending"),
}


def sort_by(viewer: Viewer, heading: str, order: str) -> None:
    header(viewer, heading).get_by_role("button").click()
    until(lambda: sort_of(viewer, heading), lambda sort: sort == order, f"{heading} is not {order}")


def header(viewer: Viewer, heading: str) -> Locator:
    named = re.compile(f"^{re.escape(heading)}[ ▾▴]*$")
    return viewer.get("buffer-table").get_by_role("columnheader").filter(has_text=named)


def sort_of(viewer: Viewer, heading: str) -> str:
    return str(header(viewer, heading).get_attribute("aria-sort"))


def check_numbers(rows: list[dict[str, str]], heading: str, sort: str) -> None:
    places = {"before": "-1", "after": "1000000000"}
    cells = [row[heading].partition(" →")[0] for row in rows]  # of "87 → 215", the last use
    values = [float(re.sub(r"[^\d.-]", "", places.get(cell, cell))) for cell in cells]
    assert values == sorted(values, reverse=sort == "descending"), heading


def check_texts(viewer: Viewer, rows: list[dict[str, str]], heading: str, sort: str) -> None:
    values = [row[heading] for row in rows]
    compared = "values => values.sort(new Intl.Collator('en', { numeric: true }).compare)"
    ordered = viewer.frame.evaluate(compared, list(values))
    assert values == (ordered[::-1] if sort == "descending" else ordered), heading


@in_host("tensorboard")
def test_filters(viewer: Viewer, host: Host) -> None:
    expected = recording(host)
    live = expected.live(expected.peak)
    search, size = viewer.get("table-search"), viewer.get("table-size")
    alert = viewer.get("buffer-table").get_by_role("alert")

    def found(test: str) -> list[int]:
        columns = [expected.rows[name] for name in ("name", "op_name", "source", "shape", "op")]
        return [row for row in live if any(re.search(test, column[row], re.IGNORECASE) for column in columns)]

    for typed, meant in (
        ("Wrapped_", "wrapped_"),
        (r"layer_[12]\)/mlp", r"layer_[12]\)/mlp"),
        (r"(mlp|attention)/\w+", r"(mlp|attention)/\w+"),  # in a worker, since it has repeats
        ("f32[16,", r"f32\[16,"),
    ):
        search.fill(typed)
        assert 0 < len(found(meant)) < len(live)
        check_count(viewer, len(found(meant)))
    assert alert.count() == 1  # "f32[16," is not a regular expression, and was searched for as plain text
    assert "plain text" in alert.inner_text()
    search.fill("nothing is called this")
    check_count(viewer, 0)
    assert "No buffer matches" in viewer.text("buffer-table")
    search.fill("")
    for typed, least, most in ((">1MiB", 2**20 + 1, 2**60), ("<= 16 KiB", 0, 2**14), ("1MiB..8MiB", 2**20, 2**23)):
        size.fill(typed)
        sizes = [expected.rows["size"][row] for row in live]
        check_count(viewer, sum(least <= size <= most for size in sizes))
        assert alert.count() == 0
    size.fill("much")
    assert "is not a size" in alert.inner_text()
    check_count(viewer, len(live))
    size.fill("")


def check_count(viewer: Viewer, count: int) -> None:
    status = viewer.get("buffer-table").get_by_role("status")
    until(status.inner_text, lambda text: text.startswith(f"{count:,} of "), f"not {count} rows")


@in_host("standalone")
def test_groups_and_small_buffers_fold_and_open(at_peak: Viewer, host: Host) -> None:
    expected = recording(host)
    live = expected.live(expected.peak)
    small = [row for row in live if expected.rows["size"][row] < SMALL_BYTES]
    table = at_peak.get("buffer-table")
    fold = table.get_by_role("button", name="smaller than")
    at_peak.get("table-size").fill("<4MiB")
    at_peak.frame.locator(".virtual").evaluate("node => node.scrollTop = 1e6")
    assert f"{len(small)} buffers" in fold.inner_text()
    assert all(size_of(row) >= SMALL_BYTES for row in at_peak.table())
    fold.click()
    at_peak.frame.locator(".virtual").evaluate("node => node.scrollTop = 1e6")
    until(lambda: size_of(at_peak.table()[-1]), lambda size: size < SMALL_BYTES, "the small ones stay folded")
    at_peak.get("table-size").fill("")
    at_peak.get("table-group").select_option("role")
    at_peak.frame.locator(".virtual").evaluate("node => node.scrollTop = 0")
    by_role = [[row for row in live if expected.rows["role"][row] == role] for role in set(expected.rows["role"])]
    largest = max(by_role, key=expected.bytes_of)
    group = table.locator("[aria-expanded]").first
    until(group.inner_text, lambda text: f"{len(largest):,} buffers" in text, "not the largest role")
    rows = at_peak.get("buffer-row")
    assert rows.count() == 0
    group.click()
    until(rows.count, bool, "the role stays closed")
    assert all(row["Role"] in group.inner_text() for row in at_peak.table())


def size_of(row: dict[str, str]) -> int:
    return int(re.sub(r"\D", "", row["Size"]))


def test_saved_and_copied_csv_are_the_table(viewer: Viewer, host: Host, tmp_path: Path) -> None:
    shown = viewer.table()
    saved = viewer.download("Save CSV")
    assert saved.suggested_filename.endswith(".csv")
    saved.save_as(tmp_path / "table.csv")
    content = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert content == copied_rows(viewer)
    assert len(shown) > 10
    for row, line in zip(shown, content, strict=False):
        assert (row["Name"], row["Role"], size_of(row)) == (line["name"], line["role"], int(line["size_bytes"]))
        assert (row["Shape"], row["Op"], row["Op name"]) == (line["shape"], line["op"], line["op_name"])
        assert line["region"] and line["offset_bytes"] and not line["address"]
    expected = recording(host)
    assert sum(int(line["size_bytes"]) for line in content) == expected.bytes_of(expected.live(expected.peak))


@in_host("xprof")
def test_a_row_clicked_is_selected_everywhere(viewer: Viewer) -> None:
    before = viewer.picture()
    row = viewer.table()[2]
    viewer.get("buffer-row").nth(2).click()
    until(lambda: viewer.get("details").count(), bool, "no details")
    assert viewer.get("details").get_by_role("heading").first.inner_text() == row["Name"]
    viewer.page.mouse.move(1, 1)
    _, marks = viewer.picture()
    assert marks != before[1]
    viewer.page.keyboard.press("Escape")
    until(lambda: viewer.get("details").count(), lambda count: count == 0, "the details stay")
