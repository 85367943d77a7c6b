"""The trace of one device: every event that its caching allocator recorded, in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I64, U8
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common.limits import MAX_TIME_US, is_plausible
from tb_memplugin.readers.torch_snapshot.pickle_columns import Nodes, Values
from tb_memplugin.readers.torch_snapshot.segments import read_pools


class Action(IntEnum):
    """What happened. An action of a newer PyTorch is OTHER, and counted."""

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


SPELT = {
    action.name.lower(): action for action in Action if action is not Action.OTHER
}  # as PyTorch writes them; "free" is what older ones wrote for both frees at once
SPELT["free"] = Action.FREE_COMPLETED


@dataclass(frozen=True, eq=False)
class Trace:
    """One row per event. `size` is what was asked for, or mapped of a segment; `time_us` -1 where none is told.

    A size that cannot be is -1, and counted in `impossible`.
    """

    action: U8
    address: I64
    known: npt.NDArray[np.bool_]  # whether the address is
    size: I64
    stream: I64
    pool: I64  # -1 where none is told, as before PyTorch 2.12
    time_us: I64
    device_free: I64  # of OOM, else -1
    frames: Nodes  # lists
    name: Text  # of the action, as written
    compile_context: Text
    user_metadata: Text
    internal_metadata: Text  # of the allocator's own doings, from PyTorch 2.15 on
    category: Text
    impossible: int

    def __len__(self) -> int:
        return len(self.action)


def read_trace(values: Values, events: Nodes) -> Trace:
    name = values.texts(values.column(events, "action"))
    actions = np.array([*(SPELT.get(name.strings[i], Action.OTHER) for i in range(len(name.strings))), Action.OTHER])
    address = values.column(events, "addr")
    size = values.integers(values.column(events, "size"))
    fits = is_plausible(size)
    return Trace(
        action=actions[name.codes].astype(np.uint8),
        address=values.integers(address),
        known=values.known(address),
        size=np.where(fits, size, -1),
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
        impossible=int((~fits).sum()),
    )


def read_times(values: Values, events: Nodes) -> I64:
    """Microseconds since 1970; -1 where none are told, or none that can be."""
    time = values.integers(values.column(events, "time_us"))
    return np.where((time >= 0) & (time < MAX_TIME_US), time, -1)
