"""Questions of a new user: each answer is on the first screen of the page, in each host, without a scroll."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.browser.hosts import HOSTS, Host, open_standalone, open_tensorboard, open_xprof
from support.browser.pages import new_context
from support.browser.viewer import PATIENCE_MS, Viewer, until
from support.servers import DEMO

from benchmarks.pods.pod import SESSION, START, Pod
from benchmarks.pods.truth import Faults

pytestmark = pytest.mark.slow

OPENED = {"standalone": open_standalone, "tensorboard": open_tensorboard, "xprof": open_xprof}
SIZES = ((1280, 720), (1500, 1000))
POD = f"run42/{START.strftime(SESSION)}"
TPU = {"run": "v5e_train_step", "tab": "memory_viewer"}


@dataclass(frozen=True)
class Task:
    """A question, the place where it is asked, what is clicked, and the elements that answer it with their words."""

    question: str
    state: dict[str, str]
    answers: dict[str, tuple[str, ...]]
    clicks: tuple[str, ...] = ()


TASKS = (
    Task(
        "What is fullest in this job?",
        {"tab": "overview", "run": "v5e_train_step"},
        {"recordings-table": ("jit_train_step", "GiB")},
    ),
    Task(
        "How full is it, and with what?",
        TPU,
        {
            "headline": ("3.67 of 15.8 GiB", "activations 40%", "make_accelerator_demo.py:64"),
            "figure-live_peak": ("3.67 GiB",),
        },
    ),
    Task("What do I change?", TPU, {"headline": ("best: Donate params",), "below-advice": ("Advice",)}),
    Task(
        "Why does it not fit, and what makes it fit?",
        {"run": "v5e_out_of_memory", "tab": "memory_viewer"},
        {"headline": ("over the limit of", "fits with")},
    ),
    Task("When is the peak?", TPU, {"usage-chart": (), "timeline-search": ()}),
    Task("What is this block?", TPU, {"details": ("MiB",)}, clicks=("timeline-plot",)),
    Task(
        "Which roles is it made of?",
        TPU,
        {"role-activation": ("activation", "GiB"), "role-optimizer-state": ("640 MiB",)},
    ),
    Task("Is there a leak?", {"run": "leak/cpu", "tab": "memory_profile"}, {"headline": ("Leak: ",)}),
    Task(
        "Do device profiles leak?",
        {"run": "device_profile_leak", "tab": "snapshots", "host": "memory9"},
        {"headline": ("Leak: ",)},
    ),
    Task(
        "What happened at the error?",
        {"run": "v5e_out_of_memory", "tab": "snapshots", "host": "compile"},
        {"headline": ("GiB",)},
    ),
    Task(
        "What changed since the other run?",
        {"tab": "compare", "run": "v5e_mended"},
        {"headline": ("GiB",), "waterfall-step": ("GiB",)},
    ),
    Task("Which host is the odd one?", {"tab": "fleet", "run": POD}, {"headline": ("hosts",), "fleet-cells": ()}),
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logs = tmp_path_factory.mktemp("first") / "logs"
    shutil.copytree(DEMO, logs, ignore=shutil.ignore_patterns("*.hlo_proto.pb", ".cached_tools.json", "__pycache__"))
    Pod(12, 4, 0.5, faults=Faults(outliers=2, leaks=0, missing=1, damaged=0)).write(logs)
    return logs


@pytest.fixture(scope="module", params=HOSTS)
def host_of_demo(request: pytest.FixtureRequest, demo: Path) -> Iterator[Host]:
    with OPENED[request.param](demo, demo.parent) as host:
        yield host


def holds(words: tuple[str, ...]) -> Callable[[str | None], bool]:
    return lambda text: text is not None and all(word in text for word in words)


def test_answers_of_a_new_user_need_no_scroll(host_of_demo: Host, browser: Browser) -> None:
    context = new_context(browser)
    page = context.new_page()
    missed = []
    page.goto(host_of_demo.address(TASKS[0].state))
    viewer = Viewer(page).wait_until_ready()
    for task in TASKS:
        page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
        viewer.go(host_of_demo.address(task.state))
        viewer.frame.evaluate("scrollTo(0, 0)")
        for click in task.clicks:
            viewer.picture()  # a click hits what is drawn
            viewer.frame.get_by_test_id(click).click()
        for testid, words in task.answers.items():
            answer = viewer.frame.get_by_test_id(testid).first
            answer.wait_for(timeout=PATIENCE_MS)
            until(answer.text_content, holds(words), f"{task.question}: {words}")
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            viewer.rest()
            for testid in task.answers:
                box = viewer.frame.get_by_test_id(testid).first.bounding_box()
                assert box is not None
                seen = min(box["y"] + box["height"], height) - box["y"]
                if seen < min(box["height"], 60) or box["x"] + 60 > width:
                    missed.append((task.question, testid, width, box))
    context.close()
    assert missed == []


@pytest.mark.parametrize("host_of_demo", ["standalone"], indirect=True)
def test_shares_line_numbers_and_savings_of_a_verdict_are_never_cut(host_of_demo: Host, browser: Browser) -> None:
    context = new_context(browser)
    viewer = Viewer(context.new_page())
    viewer.page.goto(host_of_demo.address({"tab": "memory_viewer", "run": "v5e_mended"}))
    viewer.wait_until_ready()
    verdict = viewer.frame.get_by_test_id("headline")
    until(verdict.inner_text, lambda text: "best: " in text, "no change")
    for width in (1400, 1100, 900, 720, 390):
        viewer.page.set_viewport_size({"width": width, "height": 700})
        viewer.rest()
        line = verdict.bounding_box()
        for text in ("activations 81%,", ":64", "\N{MINUS SIGN}320 MiB (up to \N{MINUS SIGN}640 MiB)"):
            box = verdict.get_by_text(text, exact=True).last.bounding_box()
            assert line and box and box["x"] + box["width"] <= line["x"] + line["width"] + 1, (width, text)
            assert box["y"] + box["height"] <= line["y"] + line["height"] + 1, (width, text)
    context.close()
