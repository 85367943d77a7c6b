"""The plot of time and memory over the size of the profile, as SVG that is readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.results.figures import FOLDER, Figures, allowed_memory
from benchmarks.timing import Cost
from benchmarks.works import HERE, RS

PLOT = FOLDER / "scaling.svg"
COLORS = {HERE: "#1f77b4", RS: "#d8711a"}
GRAY = "#888888"
LABELS = {"buffers": "buffers of a program", "events": "events of a host", "snapshot": "events of a PyTorch snapshot"}


def draw(figures: Figures) -> None:
    mpl.rcParams |= {
        "svg.hashsalt": "scaling",
        "svg.fonttype": "none",
        "font.size": 9,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GRAY),
    }
    figure = Figure(figsize=(12, 6), layout="constrained")
    for column, kind in enumerate(LABELS):
        works = {int(key.split()[1]): work for key, work in figures.items() if key.startswith(kind)}
        for row, (label, of) in enumerate(
            (
                ("seconds to the first view", lambda cost: cost.answer),
                ("memory in MB", lambda cost: cost.memory / 1e6),
            )
        ):
            place = 1 + column + len(LABELS) * row
            axes = figure.add_subplot(
                2, len(LABELS), place, xscale="log", yscale="log", xlabel=LABELS[kind], ylabel=label
            )
            _curves(axes, {n: work.costs for n, work in works.items()}, of)
            if row:
                allowed = [allowed_memory(work) / 1e6 for work in works.values()]
                axes.plot(list(works), allowed, ":", color=GRAY, label="twice the file + 100 MB")
            axes.legend(frameon=False)
            axes.grid(color=GRAY, alpha=0.2)
    figure.savefig(PLOT, transparent=True, metadata={"Date": None})


def _curves(axes: Axes, costs: dict[int, dict[str, list[Cost]]], of: Callable[[Cost], float]) -> None:
    """Draw the least of the rounds of each size, for each tool."""
    for tool, color in COLORS.items():
        sizes = [size for size, tools in costs.items() if tool in tools]
        if sizes:
            axes.plot(sizes, [min(map(of, costs[size][tool])) for size in sizes], "o-", color=color, label=tool)
