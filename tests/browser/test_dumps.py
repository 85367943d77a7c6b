"""XLA dumps on the page: programs in folders below the logdir, and one line for the stages that are skipped."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
from support.browser.hosts import Host, open_standalone
from support.browser.pages import load
from support.browser.viewer import Viewer
from support.servers import TESTS

DUMP = TESTS / "data" / "xla_dumps" / "tpu_v5e_text"
TPU = "module_0000.jit_step.cl_1014260217"


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("dumps")
    logs = folder / "logs"
    shutil.copytree(DUMP, logs / "experiments" / "first" / "xla")
    renamed = logs / "renamed"
    renamed.mkdir()
    shutil.copy(DUMP / f"{TPU}.after_optimizations.hlo.pb", renamed / "step.hlo.pb")
    shutil.copy(DUMP / f"{TPU}.before_optimizations.hlo.pb", renamed / "step_before.hlo.pb")
    with open_standalone(logs, folder) as host:
        yield host


@pytest.mark.parametrize(("run", "count"), [("experiments/first/xla", "4 stages"), ("renamed", "1 stage")])
def test_skipped_stages_are_one_gray_line_and_no_error(dumps: Host, tab: Viewer, run: str, count: str) -> None:
    viewer = load(tab, dumps.address({"tab": "overview", "run": run}))
    assert viewer.text("notes") == f"{count} without buffer assignment skipped."
    assert viewer.get("recording-row").count() > 0
    assert viewer.get("problem").count() == 0
    viewer.get("tab-memory_viewer").click()
    viewer.wait_for_state(tab="memory_viewer", run=run)
    viewer.wait_until_ready()
    assert re.match(r"Peak |[\d.]+ of ", viewer.text("headline"))
    assert viewer.get("problem").count() == 0
