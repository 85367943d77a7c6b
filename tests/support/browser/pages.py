"""Pages of a host, opened in Chromium at a state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, ViewportSize
from support.browser.hosts import Host
from support.browser.logs import LARGEST, TRAIN
from support.browser.viewer import PATIENCE_MS, Viewer

REBOUND = "evil.example"
# Chromium reads one switch of this name, so that ours replaces that of Playwright, whose names come first. The last two
# are lists below the address bar: each window would load them as a page of its own, which took as long as our page.
DISABLED_FEATURES = (
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(DISABLED_FEATURES)}",
    # Pages of a context that are open at the same time share a process, and what it has compiled of their host's code.
    "--process-per-site",
    # Only loopback resolves, for pages, workers and the browser itself; and a name that was rebound to it.
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# Replies reach the page late by up to so many seconds: shows which tests do not wait for what comes after the charts.
LATE_SECONDS = float(os.environ.get("LATE_SECONDS", 0))
_LATE = """
  const fetchNow = window.fetch;
  window.fetch = async (...asked) => {
    const reply = await fetchNow(...asked);
    await new Promise(done => setTimeout(done, Math.random() * lateBy));
    return reply;
  };
"""
START = {"run": TRAIN, "module": LARGEST}
VIEWPORT: ViewportSize = {"width": 1400, "height": 1200}

Open = Callable[..., Viewer]


def open_page(host: Host, context: BrowserContext, expected: str, state: dict[str, str]) -> Viewer:
    page = context.new_page()
    page.goto(host.address(state), wait_until="commit")
    return Viewer(page).wait_until_ready(expected)


def load(viewer: Viewer, address: str, color_scheme: Literal["light", "dark"] = "light") -> Viewer:
    """Load an address in an open page. The browser's storage stays, the page's own state does not."""
    page = viewer.page
    page.goto("about:blank")
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(color_scheme=color_scheme, media="screen")
    page.mouse.move(1, 1)
    page.goto(address)
    return viewer.wait_until_ready()


@contextmanager
def open_pages(host: Host, browser: Browser, **always: str) -> Iterator[Open]:
    """Yield a function that opens pages of a host at `always` and a state; all are closed at the end."""
    context = new_context(browser)

    def open(**state: str) -> Viewer:
        page = context.new_page()
        page.goto(host.address(always | state))
        return Viewer(page).wait_until_ready()

    yield open
    context.close()


@contextmanager
def checked_context(browser: Browser) -> Iterator[BrowserContext]:
    """Yield a browser context. AssertionError at its end for errors of the page."""
    context = new_context(browser)
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    yield context
    context.close()
    assert problems == []


def new_context(browser: Browser) -> BrowserContext:
    context = browser.new_context(viewport=VIEWPORT, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    if LATE_SECONDS:
        context.add_init_script(f"const lateBy = {1000 * LATE_SECONDS};{_LATE}")
    return context
