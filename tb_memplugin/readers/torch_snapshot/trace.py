"""Event traces of a device's caching allocator, and of pinned host memory, which PyTorch 2.14 and later record."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common.limits import MAX_TIME_US, is_plausible
from tb_memplugin.readers.torch_snapshot.pickle_values import NONE_NODE, PickleNodes, PickleValues
from tb_memplugin.readers.torch_snapshot.segments import ROUNDED, Blocks, Segments, read_pools


class TraceAction(IntEnum):
    """The action of an event. OTHER stands for actions of a newer PyTorch, which a caveat counts."""

    OTHER = 0
    ALLOC = 1
    FREE_REQUESTED = 2
    FREE_COMPLETED = 3
    SEGMENT_ALLOC = 4
    SEGMENT_FREE = 5
    SEGMENT_MAP = 6
    SEGMENT_UNMAP = 7
    SNAPSHOT = 8
    OOM = 9
    ANNOTATE = 10


ACTION_NAMES = {action.name.lower(): action for action in TraceAction if action is not TraceAction.OTHER}
ACTION_NAMES["free"] = TraceAction.FREE_COMPLETED  # as older versions of PyTorch write for both frees at once


@dataclass(frozen=True, eq=False)
class Trace:
    """One row per event. `size` is the requested bytes, or of a segment the mapped ones; `time_us` is -1 where missing.

    An impossible size is -1; `impossible` is the number of those.
    """

    action: U8
    address: I64
    known: npt.NDArray[np.bool_]  # the address is present
    size: I64
    stream: I64
    pool: I64  # -1 missing, as before PyTorch 2.12
    time_us: I64
    device_free: I64  # free bytes at an OOM, else -1
    frames: PickleNodes  # lists
    name: Text  # of the action, as in the file
    compile_context: Text
    user_metadata: Text
    internal_metadata: Text  # the allocator's own notes, since PyTorch 2.15
    category: Text
    impossible: int

    def __len__(self) -> int:
        return len(self.action)


def read_trace(values: PickleValues, events: PickleNodes) -> Trace:
    """Read the columns of a trace from its list of events."""
    values.charge_rows(len(events))
    name = values.texts(values.column(events, "action"))
    actions = np.array(
        [*(ACTION_NAMES.get(name.strings[i], TraceAction.OTHER) for i in range(len(name.strings))), TraceAction.OTHER]
    )
    address = values.column(events, "addr")
    size = values.integers(values.column(events, "size"))
    plausible = is_plausible(size)
    return Trace(
        action=actions[name.codes].astype(np.uint8),
        address=values.integers(address),
        known=values.is_integer(address),
        size=np.where(plausible, size, -1),
        stream=values.integers(values.column(events, "stream"), 0),
        pool=read_pools(values, values.column(events, "pool_id")),
        time_us=read_times(values, events),
        device_free=values.integers(values.column(events, "device_free")),
        frames=values.column(events, "frames"),
        name=name,
        compile_context=values.texts(values.column(events, "compile_context")),
        user_metadata=values.texts(values.column(events, "user_metadata")),
        internal_metadata=values.texts(values.column(events, "internal_metadata")),
        category=values.texts(values.column(events, "category")),
        impossible=int((~plausible).sum()),
    )


def read_times(values: PickleValues, events: PickleNodes) -> I64:
    """Return times in microseconds since 1970; -1 where they are missing or impossible."""
    time = values.integers(values.column(events, "time_us"))
    return np.where((time >= 0) & (time < MAX_TIME_US), time, -1)


PINNED = "pinned host"
# Settings: each allocation fills a segment of its own, and its events have the segment's size.
UNSPLIT = {"max_split_size": 0, ROUNDED: True}


def read_pinned(values: PickleValues, root: int) -> tuple[Trace, Segments, Blocks] | None:
    """Read the trace, segments and blocks of pinned memory; None where the snapshot has none."""
    segments = values.items(values.get(root, "host_segments"))
    segments = segments[values.is_integer(values.column(segments, "size"))]
    events = values.items(values.get(root, "host_traces"))
    if lists := [node for node in events.tolist() if values.is_list(node)]:  # as for devices, a list of lists of events
        events = np.concatenate([values.items(node) for node in lists])
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
    )
    allocated, active = (values.integers(values.column(segments, key), 0) > 0 for key in ("allocated", "active"))
    in_use = allocated | active
    return (
        read_trace(values, events),
        pinned,
        Blocks(
            address=pinned.address[in_use],
            size=pinned.size[in_use],
            requested=np.full(in_use.sum(), -1),
            stream=pinned.stream[in_use],
            pool=pinned.pool[in_use],
            frames=values.column(segments, "frames")[in_use],
            user_metadata=values.texts(np.full(in_use.sum(), NONE_NODE)),
        ),
    )
