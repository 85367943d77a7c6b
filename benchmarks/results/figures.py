"""Measured figures, kept as JSON beside this module, with what they were measured on."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import Cost

FOLDER = Path(__file__).parent
PEERS = ("xprof", "xprof-rs")


class Measured(NamedTuple):
    """One piece of work, done by several tools."""

    file_bytes: int  # all files of the logdir
    costs: dict[str, list[Cost]]  # by tool, one of each round


Figures = dict[str, Measured]  # by work


def allowed_memory(measured: Measured) -> float:
    """Return the memory that reading the files may take, in bytes: twice the files and 100 MB."""
    return 2 * measured.file_bytes + 100e6


def load(name: str) -> tuple[Figures, dict[str, Any]]:
    """Return the figures, and what they were measured on."""
    kept = json.loads((FOLDER / f"{name}.json").read_text())
    figures = {
        work: Measured(size, {tool: [Cost(*cost) for cost in costs] for tool, costs in tools.items()})
        for work, (size, tools) in kept["figures"].items()
    }
    return figures, kept["measured_on"]


def save(name: str, figures: Figures) -> None:
    """Keep figures, beside those of other works that were kept before."""
    path = FOLDER / f"{name}.json"
    before = json.loads(path.read_text())["figures"] if path.exists() else {}
    kept = {"measured_on": measured_on(), "figures": before | figures}
    path.write_text(json.dumps(kept, indent=1) + "\n")


def measured_on() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in PEERS},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
