"""axe-core in the page under test: violations of its default rules, as text."""

from __future__ import annotations

from typing import Any

import pytest
from support.browser.viewer import Viewer
from support.servers import REPOSITORY

SCRIPT = REPOSITORY / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
# Rules that depend on the theme: contrast, and links that only their color marks.
COLOR_RULES = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
MAX_NODES = 5  # of a violation that are named


def violations(viewer: Viewer, within: str = "html", options: dict[str, Any] | None = None) -> list[str]:
    """Return the violations of our own frame, within the elements of a selector: rule, impact and elements."""
    frame = viewer.frame
    if not frame.evaluate("'axe' in window"):
        frame.evaluate(_script())
    run = "([within, options]) => axe.run(within, { resultTypes: ['violations'], ...options })"
    found = frame.evaluate(run, [within, options or {}])
    return [_describe(violation) for violation in found["violations"]]


def _script() -> str:
    if not SCRIPT.exists():
        pytest.fail(f"{SCRIPT} is missing: run npm ci in frontend/")
    return SCRIPT.read_text(encoding="utf-8")


def _describe(violation: dict[str, Any]) -> str:
    nodes = [f"{node['html'][:160]} ({_reason(node)})" for node in violation["nodes"][:MAX_NODES]]
    return f"{violation['id']} [{violation['impact']}], {len(violation['nodes'])} elements: {'; '.join(nodes)}"


def _reason(node: dict[str, Any]) -> str:
    return " ".join(str(node["failureSummary"]).split()[:40])
