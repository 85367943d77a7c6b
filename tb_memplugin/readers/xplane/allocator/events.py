"""Allocator events as columns, selected by two threads, and ordered by time over all threads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import F64, I32, I64, Mask
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.xplane.events import select
from tb_memplugin.native.xplane.stats import INTEGER, MISSING, PRESENCE, REAL, TEXT, new_columns, read_stats
from tb_memplugin.readers.common.budget import BudgetShare, at_once
from tb_memplugin.readers.common.limits import MAX_BYTES
from tb_memplugin.readers.xplane.planes import DEALLOCATION, Plane, allocator_event_ids

# Starting a thread takes 0.1 ms. Finding the events in 1 MB takes 0.3 ms, and reading those of 1 MB 2.5 ms.
LARGE_BYTES = 1 << 20

Texts = list[bytes | int]  # by code: bytes, or the id of the stat whose name is the text


def select_events(plane: Plane, kinds: Mapping[int, int]) -> dict[str, Any]:
    """Select the plane's events in two threads, each with about half of the bytes; return the columns of `select`."""
    if len(plane.data) < LARGE_BYTES:
        return select(plane.data, kinds, budget=plane.budget)
    lines = plane.lines
    total = np.cumsum(lines.length)
    cut = int(np.searchsorted(total, total[-1:].sum() / 2))
    shares = BudgetShare(plane.budget), BudgetShare(plane.budget)
    pieces = Spans(lines.start[:cut], lines.length[:cut]), Spans(lines.start[cut:], lines.length[cut:])
    first, second = at_once(
        *(partial(select, plane.data, kinds, piece, share) for piece, share in zip(pieces, shares, strict=True))
    )
    second["line"] += cut
    names = [found.pop("line_name") for found in (first, second)]
    return {
        "line_name": Spans(*(np.concatenate(columns) for columns in zip(*names, strict=True))),
        **{name: np.concatenate([first[name], second[name]]) for name in first},
    }


def columns_of(
    plane: Plane, events: Spans, ids: Mapping[int, int], types: Sequence[int]
) -> tuple[list[npt.NDArray[Any]], list[Texts]]:
    """Read the events' stats into new columns of these types, in two threads, each with half of the rows."""
    rows = len(events.start)
    columns = new_columns(rows, types, set(ids.values()))
    if int(events.length.sum()) < LARGE_BYTES:
        return columns, read_stats(plane.data, events.start, events.length, ids, columns, plane.budget)

    def read(piece: slice, share: BudgetShare) -> list[Texts]:
        return read_stats(
            plane.data, events.start[piece], events.length[piece], ids, [c[piece] for c in columns], share
        )

    half, rest = slice(rows // 2), slice(rows // 2, rows)
    shares = BudgetShare(plane.budget), BudgetShare(plane.budget)
    first, second = at_once(partial(read, half, shares[0]), partial(read, rest, shares[1]))
    return columns, [
        _join(mine, others, column[rest]) for mine, others, column in zip(first, second, columns, strict=True)
    ]


def _join(first: Texts, second: Texts, codes: I32) -> Texts:
    """Return the distinct texts of both halves, and number the `codes` of the second half by them, in place."""
    number = {text: code for code, text in enumerate(first)}
    renumbered = np.array([number.setdefault(text, len(number)) for text in second], dtype=np.int32)
    if (renumbered != np.arange(len(second))).any():
        codes[:] = np.append(renumbered, np.int32(-1))[codes]  # the last entry is for the empty text
    return [*number]


BYTES = (
    "bytes_allocated", "bytes_reserved", "bytes_available", "peak_bytes_in_use", "requested_bytes", "allocation_bytes",
)  # fmt: skip
NUMBERS = (*BYTES, "addr", "data_type", "group_id", "index_on_host")
TEXTS = ("allocator_name", "tf_op", "region_type", "shape")
FRACTION = "fragmentation"
# Names of the same stats in older and other writers.
SPELLINGS = {"device_ordinal": "index_on_host", "address": "addr", "tensor_shapes": "shape"}
UNKNOWN = "any other stat"
TYPES = {
    **dict.fromkeys(NUMBERS, INTEGER), **dict.fromkeys(TEXTS, TEXT), FRACTION: REAL, UNKNOWN: PRESENCE,
}  # fmt: skip
COLUMNS = {name: number for number, name in enumerate(TYPES)}
UNUSED = {"id"}  # a running number. Names with a leading _ are internal to the tracer.
ADDRESS_LIMIT = 2**62  # below it, the end address of an allocation fits 64 bits too


@dataclass(frozen=True)
class AllocatorEvents:
    """One row per event. In an event that lacks them, numbers are MISSING, texts empty and the fraction NaN."""

    file_row: I64  # index among the plane's allocator events, in file order
    line: I32  # of the plane: the thread
    time_ps: I64  # since the start of the host's first line
    start_ns: int  # start of that line, on the profile's clock
    frees: Mask
    numbers: dict[str, I64]
    texts: dict[str, Text]
    fragmentation: F64  # 0..1, else NaN
    impossible: Mask  # has a size below 0 or above MAX_BYTES, which is ignored
    out_of_order: Mask  # earlier than the previous event on its thread
    unknown: Mask  # has a stat that is not read here

    def __len__(self) -> int:
        return len(self.line)


def read_allocator_events(plane: Plane) -> AllocatorEvents | None:
    """Read the allocator events, sorted by time; simultaneous events keep file order.

    Returns None where the plane has none. Raises ValueError where the plane is damaged.
    """
    kinds = {key: int(plane.event_names[key] == DEALLOCATION) for key in allocator_event_ids(plane)}
    if not kinds:
        return None
    found = select_events(plane, kinds)
    line, offset = found["line"], found["offset_ps"]
    if not len(line):
        return None
    # An event's time is its line's timestamp plus an offset. Picoseconds since 1970 would overflow.
    start_ns = int(found["line_timestamp_ns"].min())
    time = ((found["line_timestamp_ns"] - start_ns) * 1000)[line] + offset
    order = np.argsort(time, kind="stable")
    earlier = np.r_[False, (line[1:] == line[:-1]) & (offset[1:] < offset[:-1])]
    # Read in order of time, as putting one column in order takes less than putting all of them.
    spans = Spans(found["start"][order], found["length"][order])
    columns, texts = columns_of(plane, spans, _columns(plane), list(TYPES.values()))
    numbers, fraction = {name: columns[COLUMNS[name]] for name in NUMBERS}, columns[COLUMNS[FRACTION]]
    return AllocatorEvents(
        file_row=order,
        line=line[order],
        time_ps=time[order],
        start_ns=start_ns,
        frees=(found["kind"] == 1)[order],
        numbers=numbers,
        texts={name: _text(plane, columns[COLUMNS[name]], texts[COLUMNS[name]]) for name in TEXTS},
        fragmentation=np.where((fraction >= 0) & (fraction <= 1), fraction, np.nan),
        impossible=_drop_impossible(numbers),
        out_of_order=earlier[order],
        unknown=columns[COLUMNS[UNKNOWN]].astype(bool),
    )


def _columns(plane: Plane) -> dict[int, int]:
    names = {key: SPELLINGS.get(name, name) for key, name in plane.stat_names.items()}
    return {
        key: COLUMNS[name if name in COLUMNS else UNKNOWN]
        for key, name in names.items()
        if name not in UNUSED and not name.startswith("_")
    }


def _drop_impossible(numbers: dict[str, I64]) -> Mask:
    """Set impossible numbers to MISSING, in place; return a mask of the events with an impossible size."""
    impossible = np.zeros(len(numbers["addr"]), dtype=bool)
    for name, limit in {**dict.fromkeys(BYTES, MAX_BYTES), "addr": ADDRESS_LIMIT - 1}.items():
        wrong = numbers[name].view(np.uint64) > limit  # negative numbers, and so MISSING, are larger than any limit
        wrong &= numbers[name] != MISSING
        if wrong.any():
            numbers[name][wrong] = MISSING
            if name in BYTES:
                impossible |= wrong
    return impossible


def _text(plane: Plane, codes: I32, texts: list[bytes | int]) -> Text:
    """Return the texts of a stat: in the events, or the name of the stat that an id refers to."""
    named = (text if isinstance(text, bytes) else plane.stat_names.get(text, "").encode() for text in texts)
    return Text(codes, Strings.of_bytes([*named]))
