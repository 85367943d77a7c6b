"""A forest of a recording's rows for the page, and weighted by live bytes at one position as nodes and lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np

from tb_memplugin.analysis.ownership.classification import Classification, forest, weigh
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED, live_rows, share, unexplained_bytes
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING, Choice, Flag
from tb_memplugin.questions.asking.payload import columns_of, encode
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.sizes import bytes_text, percent_text

# An allocator's counters include the stacks that programs reserve.
UNEXPLAINED_OF = {
    RecordingKind.ALLOCATOR: f"stack, or {UNEXPLAINED}",
    RecordingKind.OUT_OF_MEMORY: "not listed by the text",
    RecordingKind.WATCH: "not recorded by samples: see the run's snapshots",
}
MIN_SHARE = 0.005  # of a line in a terminal
MAX_LINES = 24


class TreeLineJson(TypedDict):
    """A line of a tree: nodes that each contain only the next are one line, `label` joins their names."""

    depth: int
    """The level among the listed lines, 0 at the top."""
    label: str
    """The name of a node; nodes that each contain only the next are one line, with the names of all, of source lines
    with the innermost."""
    bytes: int
    """Live bytes below the node."""
    share: float
    """Its share of all live bytes."""
    merged: int
    """The number of repeated layers that the node stands for."""


def weighted_nodes(
    recording: Recording, by: Classification, position: int, *, merge: bool = False
) -> list[TreeLineJson]:
    """Return the nodes with live bytes in preorder, the heaviest first; nodes of depth 0 add up to the total."""
    found = forest(recording, by, merge)
    rows = live_rows(recording, position)
    weight = weigh(found, rows, recording.allocations.charge[rows])
    rest = unexplained_bytes(recording, position)
    # Rows that exceed the bytes in use leave a negative rest, and would be more than the whole.
    total = int(weight[found.parent < 0].sum()) + max(rest, 0)
    nodes: list[TreeLineJson] = [
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
    """Yield (node, depth) of all nodes with weight, in preorder."""
    children: dict[int, list[int]] = {}
    for node in np.argsort(weight, kind="stable").tolist():  # lightest first, since the list below is used as a stack
        if weight[node]:
            children.setdefault(parent[node], []).append(node)
    waiting = [(node, 0) for node in children.get(-1, [])]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in children.get(node, [])]


class HeavyChain(NamedTuple):
    """Nodes that each contain only the next one, and the number of shown chains that contain them."""

    depth: int
    nodes: list[TreeLineJson]

    def line(self, separator: str | None) -> TreeLineJson:
        """Return the chain as one line, with the labels of all nodes; without a separator, of the last one."""
        last = self.nodes[-1]
        label = separator.join(node["label"] for node in self.nodes) if separator else last["label"]
        return {**last, "depth": self.depth, "label": label}


def heaviest_chains(nodes: Sequence[TreeLineJson], most: int | None) -> list[HeavyChain]:
    """Return the heaviest chains in preorder, at most `most`; the parents of each are among them."""
    chains = _chains(nodes)
    # The parent of a chain comes before it and is at least as heavy, so it is among the heaviest too.
    heaviest = sorted(range(len(chains)), key=lambda i: -chains[i][-1]["bytes"])[:most]
    depth: dict[int, int] = {}
    found = []
    for chain in map(chains.__getitem__, sorted(heaviest)):
        depth[chain[-1]["depth"]] = depth.get(chain[0]["depth"] - 1, -1) + 1  # counted in chains, not in nodes
        found.append(HeavyChain(depth[chain[-1]["depth"]], chain))
    return found


def lines(nodes: Sequence[TreeLineJson], separator: str | None = "/") -> Iterator[str]:
    """Format the heaviest nodes, a chain of equal weight as one line.

    The labels of a chain are joined with `separator`; without one, the line shows the label of the last node.
    """
    shown = [found for found in heaviest_chains(nodes, MAX_LINES) if found.nodes[-1]["share"] >= MIN_SHARE]
    cells = []
    for depth, chain in shown:
        last = chain[-1]
        label = separator.join(map(_label, chain)) if separator else _label(last)
        cells.append([*amount_cells(last), f"{'  ' * depth}{label}"])
    yield from align(cells, 2) if cells else ["nothing"]
    if hidden := len(nodes) - sum(len(found.nodes) for found in shown):
        yield f"and {hidden:,} smaller; --json lists all"


def amount_cells(part: Mapping[str, Any]) -> list[str]:
    """Return the bytes and the share of a part of the live memory as cells of a table."""
    return [bytes_text(part["bytes"]), percent_text(part["share"], digits=1)]


def _label(node: TreeLineJson) -> str:
    repeats = "*" in node["label"] and node["merged"] > 1
    return f"{node['label']} x{node['merged']}" if repeats else node["label"]


def _chains(nodes: Sequence[TreeLineJson]) -> list[list[TreeLineJson]]:
    """Group each node with its parent where the parent contains nothing else."""
    chains: list[list[TreeLineJson]] = []
    for node in nodes:
        above = chains[-1][-1] if chains else None
        if above is not None and node["depth"] == above["depth"] + 1 and node["bytes"] == above["bytes"]:
            chains[-1].append(node)
        else:
            chains.append([node])
    return chains


@endpoint("tree", RECORDING, Choice("by", Classification), Flag("merge", default=False), report=EACH_CHOICE)
def tree(recording: Recording, by: Classification, merge: bool) -> bytes:
    """Return the tables `tree`, one row per node in preorder, and `leaf`, the node of each allocation."""
    found = forest(recording, by, merge)
    nodes = columns_of(found, ("label", "parent", "end", "merged", "framework"))
    return encode({"by": by.value, "merge": merge}, {"tree": nodes, "leaf": {"node": found.leaf}})
