"""A forest: the classification of a recording's rows, from which the page computes weights at any position."""

from __future__ import annotations

from tb_memplugin.analysis.ownership.classification import Classification, forest
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.views.endpoints.inputs import RECORDING, Choice, Flag
from tb_memplugin.views.shared.payload import Table, encode


@endpoint("tree", RECORDING, Choice("by", Classification), Flag("merge", False), report=EACH_CHOICE)
def tree(recording: Recording, by: Classification, merge: bool) -> bytes:
    """Return the tables `tree`, one row per node in preorder, and `leaf`, the node of each allocation."""
    found = forest(recording, by, merge)
    nodes: Table = {
        "label": found.label,
        "parent": found.parent,
        "end": found.end,
        "merged": found.merged,
        "framework": found.framework,
    }
    return encode({"by": by.value, "merge": merge}, {"tree": nodes, "leaf": {"node": found.leaf}})
