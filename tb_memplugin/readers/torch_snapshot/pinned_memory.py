"""Pinned memory of the host: PyTorch 2.14 and later record it beside the devices' where they are asked to."""

from __future__ import annotations

import numpy as np

from tb_memplugin.readers.torch_snapshot.pickle_columns import NOTHING, Nodes, Values
from tb_memplugin.readers.torch_snapshot.segments import Blocks, Segments
from tb_memplugin.readers.torch_snapshot.size_rounding import ROUNDED
from tb_memplugin.readers.torch_snapshot.trace import Trace, read_trace

PINNED = "pinned host"
# As settings: an allocation gets a segment as a whole, and its events tell the bytes of that, not what was asked for.
UNSPLIT = {"max_split_size": 0, ROUNDED: True}


def read_pinned(values: Values, root: int) -> tuple[Trace, Segments, Blocks] | None:
    """None where nothing is recorded of it."""
    segments = values.items(values.get(root, "host_segments"))
    segments = segments[values.known(values.column(segments, "size"))]
    events = _events(values, values.items(values.get(root, "host_traces")))
    if not len(segments) and not len(events):
        return None
    count = len(segments)
    held = Segments(
        address=values.integers(values.column(segments, "address")),
        size=values.sizes(values.column(segments, "size")),
        stream=np.zeros(count, np.int64),
        pool=np.full(count, -1),
        expandable=np.zeros(count, bool),
        frames=values.column(segments, "frames"),
    )
    in_use = (values.integers(values.column(segments, "allocated"), 0) > 0) | (
        values.integers(values.column(segments, "active"), 0) > 0
    )
    return (
        read_trace(values, events),
        held,
        Blocks(
            address=held.address[in_use],
            size=held.size[in_use],
            requested=np.full(in_use.sum(), -1),
            stream=held.stream[in_use],
            pool=held.pool[in_use],
            frames=held.frames[in_use],
            user_metadata=np.full(in_use.sum(), NOTHING),
        ),
    )


def _events(values: Values, items: Nodes) -> Nodes:
    """A list of events, or as of devices a list of such lists."""
    lists = [node for node in items.tolist() if values.is_list(node)]
    return np.concatenate([values.items(node) for node in lists]) if lists else items
