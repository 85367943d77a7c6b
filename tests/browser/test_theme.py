"""Charts after the theme changes while the page is open."""

from __future__ import annotations

import pytest
from support.browser.logs import LARGEST, TRAIN
from support.browser.pages import Open
from support.browser.viewer import Viewer

# The pixels of every canvas that is drawn on.
CANVASES = """() => [...document.querySelectorAll('canvas')].filter(canvas => canvas.width * canvas.height > 0)
  .map(canvas => `${canvas.className} ${canvas.parentElement.className} ${canvas.toDataURL()}`)"""


def canvases(viewer: Viewer) -> list[str]:
    viewer.picture()
    found: list[str] = viewer.frame.evaluate(CANVASES)
    return found


# A chart has the same code in each host, and a host reports its theme to all charts in the same way.
@pytest.mark.parametrize(
    ("host", "chart"),
    [("standalone", "tree"), ("tensorboard", "flame"), ("xprof", "treemap")],
    indirect=["host"],
    scope="session",
)
def test_every_chart_follows_the_systems_theme_at_once(chart: str, open_at: Open) -> None:
    viewer = open_at(run=TRAIN, module=LARGEST, chart=chart)
    light = canvases(viewer)
    viewer.page.emulate_media(color_scheme="dark")
    changed = canvases(viewer)
    viewer.page.reload()
    viewer.wait_until_ready()
    assert len(light) > 3
    assert changed == canvases(viewer), "a chart kept colors of the light theme"
    assert changed != light


@pytest.mark.parametrize("host", ["tensorboard"], indirect=True, scope="session")
def test_the_theme_of_tensorboard_is_followed_and_not_the_systems(open_at: Open) -> None:
    viewer = open_at(run=TRAIN, module=LARGEST)
    light = canvases(viewer)
    viewer.page.evaluate("document.body.classList.add('dark-mode')")
    dark = canvases(viewer)
    assert dark[:3] != light[:3]
    viewer.page.emulate_media(color_scheme="dark")
    assert canvases(viewer) == dark
    viewer.page.evaluate("document.body.classList.remove('dark-mode')")
    assert canvases(viewer) == light
