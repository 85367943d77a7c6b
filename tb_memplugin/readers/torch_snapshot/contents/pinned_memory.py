"""Pinned host memory, which PyTorch 2.14 and later can record next to the devices' memory."""

from __future__ import annotations

import numpy as np

from tb_memplugin.readers.torch_snapshot.allocations.size_rounding import ROUNDED
from tb_memplugin.readers.torch_snapshot.contents.pickle_values import NONE_NODE, PickleNodes, PickleValues
from tb_memplugin.readers.torch_snapshot.contents.segments import Blocks, Segments
from tb_memplugin.readers.torch_snapshot.contents.trace import Trace, read_trace

PINNED = "pinned host"
# Settings: each allocation fills a segment of its own, and its events have the segment's size.
UNSPLIT = {"max_split_size": 0, ROUNDED: True}


def read_pinned(values: PickleValues, root: int) -> tuple[Trace, Segments, Blocks] | None:
    """Read the trace, segments and blocks of pinned memory; None where the snapshot has none."""
    segments = values.items(values.get(root, "host_segments"))
    segments = segments[values.is_integer(values.column(segments, "size"))]
    events = _events(values, values.items(values.get(root, "host_traces")))
    if not len(segments) and not len(events):
        return None
    count = len(segments)
    values.charge_rows(count)
    pinned = Segments(
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
        pinned,
        Blocks(
            address=pinned.address[in_use],
            size=pinned.size[in_use],
            requested=np.full(in_use.sum(), -1),
            stream=pinned.stream[in_use],
            pool=pinned.pool[in_use],
            frames=pinned.frames[in_use],
            user_metadata=values.texts(np.full(in_use.sum(), NONE_NODE)),
        ),
    )


def _events(values: PickleValues, items: PickleNodes) -> PickleNodes:
    """Return the events, from a list of events or, as for devices, a list of such lists."""
    lists = [node for node in items.tolist() if values.is_list(node)]
    return np.concatenate([values.items(node) for node in lists]) if lists else items
