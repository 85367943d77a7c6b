"""A forest weighed at one position: as a list of nodes for JSON, and as indented lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tb_memplugin.analysis.ownership.classification import Classification, forest, weigh
from tb_memplugin.analysis.usage.breakdown import unexplained_bytes
from tb_memplugin.analysis.usage.figures import share
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.terminal.text_table import aligned

UNEXPLAINED = "explained by no allocation"
UNEXPLAINED_OF = {RecordingKind.ALLOCATOR: f"stack, or {UNEXPLAINED}"}  # programs reserve memory for stacks
LEAST_SHARE = 0.005  # of what a terminal shows
LINES = 24


def weighed(recording: Recording, by: Classification, position: int, *, merge: bool = False) -> list[dict[str, Any]]:
    """Nodes with live bytes, each before what is below it, the heaviest first; those of depth 0 sum up to all."""
    found = forest(recording, by, merge)
    rows = live_rows(recording, position)
    weight = weigh(found, rows, recording.allocations.charge[rows])
    rest = unexplained_bytes(recording, position)
    total = int(weight[found.parent < 0].sum()) + rest
    nodes = [
        {
            "depth": depth,
            "label": found.label[node],
            "bytes": int(weight[node]),
            "share": share(int(weight[node]), total),
            "merged": int(found.merged[node]),
        }
        for node, depth in _heaviest_first(found.parent.tolist(), weight.tolist())
    ]
    if rest:
        label = UNEXPLAINED_OF.get(recording.kind, UNEXPLAINED)
        nodes.append({"depth": 0, "label": label, "bytes": rest, "share": share(rest, total), "merged": 1})
    return nodes


def _heaviest_first(parent: Sequence[int], weight: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(node, depth) of all that weigh something, in preorder."""
    below: dict[int, list[int]] = {}
    for node in np.argsort(weight, kind="stable").tolist():  # lightest first, so that a stack gives the heaviest first
        if weight[node]:
            below.setdefault(parent[node], []).append(node)
    waiting = [(node, 0) for node in below.get(-1, [])]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in below.get(node, [])]


def lines(nodes: Sequence[dict[str, Any]], joined_by: str | None = "/") -> Iterator[str]:
    """The heaviest nodes. A chain of nodes that hold the same is one line: joined, or without `joined_by` its last."""
    chains = list(_chains(nodes))
    heaviest = sorted(range(len(chains)), key=lambda i: -chains[i][-1]["bytes"])[:LINES]
    # What is above a node comes before it and weighs no less, so it is shown too.
    shown = [chains[i] for i in sorted(heaviest) if chains[i][-1]["share"] >= LEAST_SHARE]
    depth: dict[int, int] = {}
    cells = []
    for chain in shown:
        first, last = chain[0], chain[-1]
        # As deep as chains, not as nodes: the labels of a chain share one line.
        depth[last["depth"]] = indent = depth.get(first["depth"] - 1, -1) + 1
        label = joined_by.join(map(_label, chain)) if joined_by else _label(last)
        cells.append([bytes_text(last["bytes"]), f"{last['share']:.1%}", f"{'  ' * indent}{label}"])
    yield from aligned(cells, 2) if cells else ["nothing"]
    if hidden := sum(map(len, chains)) - sum(map(len, shown)):
        yield f"and {hidden:,} smaller: --json lists all"


def _label(node: dict[str, Any]) -> str:
    repeats = "*" in node["label"] and node["merged"] > 1
    return f"{node['label']} x{node['merged']}" if repeats else str(node["label"])


def _chains(nodes: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Each node goes with the one above it where that holds nothing else."""
    chain: list[dict[str, Any]] = []
    for node in nodes:
        if chain and node["depth"] == chain[-1]["depth"] + 1 and node["bytes"] == chain[-1]["bytes"]:
            chain.append(node)
            continue
        if chain:
            yield chain
        chain = [node]
    if chain:
        yield chain
