"""Damaged files, links to missing recordings, and names that are markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser
from support.browser.expected import recording
from support.browser.hosts import Host, in_host, open_standalone
from support.browser.logs import (
    BAD_HOST,
    DAMAGED,
    GOOD_HOST,
    HOSTILE,
    HOSTILE_MODULE,
    LARGEST,
    MARKUP,
    SCRIPT,
    SMALL,
    TRAIN,
)
from support.browser.pages import Open, new_context
from support.browser.viewer import Viewer, until

from tb_memplugin.questions.kinds.verdict import verdict_text


def test_a_damaged_host_is_named_and_the_other_one_works(go_to: Open, host: Host) -> None:
    viewer = go_to(run=DAMAGED)
    problem = viewer.text("problem")
    assert f"{BAD_HOST}.xplane.pb" in problem
    assert len(problem) > len(f"{BAD_HOST}.xplane.pb") + 10, "a file without a reason"
    assert viewer.headline() == verdict_text(recording(host, DAMAGED, LARGEST).meta["verdict"])
    if host.name != "xprof":  # its sidebar has the hosts
        assert viewer.get("host-picker").input_value() == GOOD_HOST
    viewer.wait_for_state(host=GOOD_HOST)
    assert len(viewer.table()) > 10


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"run": TRAIN, "module": "jit_nothing(7)"}, "jit_nothing(7)"),
        ({"run": TRAIN, "host": "nobody"}, "nobody"),
        ({"run": TRAIN, "module": LARGEST, "space": "VMEM"}, "VMEM"),
    ],
)
def test_a_missing_part_of_a_link_is_named(go_to: Open, wrong: dict[str, str], named: str) -> None:
    viewer = go_to(**wrong)
    assert named in viewer.get("contents").get_by_role("status").first.inner_text()
    # The run's modules can still be picked.
    if "host" not in wrong:
        viewer.pick("module-picker", "loss", SMALL)
        until(viewer.get("headline").count, bool, "no headline")


def test_an_unknown_run_is_an_error_that_names_it(go_to: Open) -> None:
    """Uses a loaded page, because XProf replaces an unknown run when it loads."""
    viewer = go_to("error", run="gone/run")
    assert "gone/run" in viewer.frame.get_by_role("alert").inner_text()


@in_host("tensorboard")
def test_a_link_with_invalid_state_shows_the_page(go_to: Open) -> None:
    invalid = {"position": "99999999", "selected": "1e9", "zoom": "9,a", "yzoom": "NaN,Infinity", "search": "(["}
    invalid |= {"chart": "flame", "by": "model", "node": "gone\\/", "only": "model:gone", "weight": "kg"}
    viewer = go_to(run=TRAIN, module=LARGEST, theme="no", show="no", **invalid)
    viewer.picture()
    assert viewer.get("details").count() == 0
    assert 0 <= int(viewer.text("inspected-position")) < 99999999


@pytest.mark.parametrize(
    ("host", "search"),
    [("standalone", r"(\w?){40}!"), ("tensorboard", r"(\w|\w){25}!"), ("xprof", "(.*)*(.*)*(.*)*!")],
    indirect=["host"],
)
def test_a_link_with_a_slow_expression_leaves_the_page_usable(go_to: Open, search: str) -> None:
    viewer = go_to(run=TRAIN, module=LARGEST, search=search)
    alert = viewer.get("buffer-table").get_by_role("alert")
    until(alert.count, bool, "the search does not end")
    assert "takes too long" in alert.inner_text()
    viewer.get("table-search").fill("fusion")
    until(lambda: viewer.table(), bool, "no rows")
    assert alert.count() == 0


def test_markup_in_names_stays_text(open_at: Open, host: Host, tmp_path: Path) -> None:
    module = f"{HOSTILE_MODULE}(2)"
    viewer = open_at(run=HOSTILE)
    expected = recording(host, HOSTILE, module)
    assert viewer.headline() == verdict_text(expected.meta["verdict"])
    assert viewer.get("module-picker").input_value() == module
    viewer.picture()
    row = expected.uncovered()[0]
    name = expected.rows["name"][row]
    assert MARKUP in name
    viewer.page.mouse.move(*expected.point(row, viewer.plot()))
    tooltip = viewer.get("under-pointer")
    until(tooltip.count, bool, "nothing is under the pointer")
    assert name in tooltip.inner_text()
    assert SCRIPT in tooltip.inner_text()
    viewer.page.mouse.click(*expected.point(row, viewer.plot()))
    details = viewer.details()
    assert details.startswith(name)
    assert SCRIPT in details
    assert f"make_demo.py{MARKUP}" in details
    assert any(MARKUP in line["Name"] and SCRIPT in line["Op name"] for line in viewer.table())
    viewer.page.mouse.move(*viewer.curve().at(0.5, 0.5))
    until(lambda: viewer.get("panel").inner_text(), lambda text: MARKUP in text, "no instruction at the curve")
    viewer.get("module-picker").click()
    assert MARKUP in viewer.options().first.inner_text()
    viewer.get("module-picker").press("Escape")
    saved = tmp_path / "timeline.svg"
    viewer.save_picture("allocation-timeline", "svg").save_as(saved)
    titles = [title.text or "" for title in ElementTree.parse(saved).iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith(name) for title in titles)
    assert viewer.frame.locator("img, script:has-text('pwned')").count() == 0
    for frame in viewer.page.frames:
        assert frame.evaluate("typeof window.pwned") == "undefined"


@pytest.mark.parametrize(
    "path",
    [
        "recordings?run=..",
        "recordings?run=../../../../etc",
        f"recordings?run={quote('train_step/cpu/../../../..')}",
        f"memory_viewer?id={quote('../../etc/passwd|a|b|HBM')}",
        f"rows?id={quote(f'{TRAIN}|../../../../../etc/passwd|{LARGEST}|HBM')}",
        "../../../../../../etc/passwd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
    ],
)
def test_paths_with_dots_are_not_found(host: Host, path: str) -> None:
    answer = host.server.get(host.api + path)
    assert answer.status == 404
    assert b"root:" not in answer.body
    if "?" in path:
        assert set(json.loads(answer.body)["error"]) == {"what", "where", "remedy"}


@pytest.fixture
def empty(browser: Browser, tmp_path: Path) -> Iterator[Viewer]:
    (tmp_path / "logs").mkdir()
    context = new_context(browser)
    with open_standalone(tmp_path / "logs", tmp_path) as host:
        page = context.new_page()
        page.goto(host.server.url)
        yield Viewer(page)
    context.close()


def test_an_empty_logdir_has_instructions(empty: Viewer, tmp_path: Path) -> None:
    message = empty.wait_until_ready().get("contents").get_by_role("status").first.inner_text()
    assert str(tmp_path / "logs") in message
    assert "jax.profiler.trace" in message
