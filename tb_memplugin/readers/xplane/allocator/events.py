"""Allocator events as columns, ordered by time over all threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_memplugin.model.arrays import F64, I64, U8, Mask
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.xplane.events import ABSENT, DOUBLE, NUMBER, REFERENCE, TEXT, collect
from tb_memplugin.readers.xplane.planes import Plane

PLANE = "/host:CPU"
ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"

BYTES = (
    "bytes_allocated", "bytes_reserved", "bytes_available", "peak_bytes_in_use", "requested_bytes", "allocation_bytes",
)  # fmt: skip
NUMBERS = (*BYTES, "addr", "data_type", "group_id", "index_on_host")
TEXTS = ("allocator_name", "tf_op", "region_type", "shape")
FRACTION = "fragmentation"
# Names of the same stats in older and other writers.
SPELLINGS = {"device_ordinal": "index_on_host", "address": "addr", "tensor_shapes": "shape"}
UNKNOWN = "any other stat"
COLUMNS = {name: number for number, name in enumerate((*NUMBERS, *TEXTS, FRACTION, UNKNOWN))}
UNUSED = {"id"}  # a running number. Names with a leading _ are internal to the tracer.
MISSING = -(2**63)  # the value of a number that an event lacks
MAX_BYTES = 2**50  # no device has a PiB
ADDRESS_LIMIT = 2**62  # below it, the end address of an allocation fits 64 bits too


@dataclass(frozen=True)
class AllocatorEvents:
    """One row per event. In an event that lacks them, numbers are MISSING, texts empty and the fraction NaN."""

    file_row: I64  # index among the plane's allocator events, in file order
    line: I64  # of the plane: the thread
    time_ps: I64  # since the start of the host's first line
    start_ns: int  # start of that line, on the profile's clock
    frees: Mask
    numbers: dict[str, I64]
    texts: dict[str, Text]
    fragmentation: F64  # 0..1
    impossible: Mask  # has a size below 0 or above MAX_BYTES, which is ignored
    out_of_order: Mask  # earlier than the previous event on its thread
    unknown: Mask  # has a stat that is not read here

    def __len__(self) -> int:
        return len(self.line)


def allocator_event_ids(plane: Plane) -> frozenset[int]:
    """Return the metadata ids of the plane's allocator events."""
    return frozenset(key for key, name in plane.event_names.items() if name in (ALLOCATION, DEALLOCATION))


def read_allocator_events(plane: Plane) -> AllocatorEvents | None:
    """Read the allocator events, sorted by time; simultaneous events keep file order.

    Returns None where the plane has none. Raises ValueError where the plane is damaged.
    """
    kinds = {key: int(plane.event_names[key] == DEALLOCATION) for key in allocator_event_ids(plane)}
    if not kinds:
        return None
    found = collect(plane.data, kinds, _columns(plane), len(COLUMNS), plane.budget)
    line, offset = found["line"], found["offset_ps"]
    if not len(line):
        return None
    # An event's time is its line's timestamp plus an offset. Picoseconds since 1970 would overflow.
    start_ns = int(found["line_timestamp_ns"].min())
    time = (found["line_timestamp_ns"] - start_ns)[line] * 1000 + offset
    order = np.argsort(time, kind="stable")

    def cells(name: str) -> tuple[I64, U8]:
        column = COLUMNS[name]
        return found["value"][column][order], found["form"][column][order]

    numbers = {name: _number(*cells(name)) for name in NUMBERS}
    return AllocatorEvents(
        file_row=order,
        line=line[order],
        time_ps=time[order],
        start_ns=start_ns,
        frees=found["kind"][order] == 1,
        numbers=numbers,
        texts={name: _text(plane, found["texts"][COLUMNS[name]], *cells(name)) for name in TEXTS},
        fragmentation=_fraction(*cells(FRACTION)),
        impossible=_drop_impossible(numbers),
        out_of_order=np.r_[False, (line[1:] == line[:-1]) & (offset[1:] < offset[:-1])][order],
        unknown=found["form"][COLUMNS[UNKNOWN]][order] != ABSENT,
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
    address = numbers["addr"]
    address[(address < 0) | (address >= ADDRESS_LIMIT)] = MISSING
    impossible = np.zeros(len(numbers["addr"]), dtype=bool)
    for name in BYTES:
        wrong = (numbers[name] != MISSING) & ((numbers[name] < 0) | (numbers[name] > MAX_BYTES))
        numbers[name][wrong] = MISSING
        impossible |= wrong
    return impossible


def _number(value: I64, form: U8) -> I64:
    numbers = np.where(form == NUMBER, value, MISSING)
    doubles = form == DOUBLE
    if doubles.any():
        real = value[doubles].view(np.float64)
        numbers[doubles] = np.where(np.abs(real) < 2**62, np.nan_to_num(real), MISSING)
    return numbers


def _fraction(value: I64, form: U8) -> F64:
    """Return the fractions, NaN outside 0..1. Writers store the fractions 0 and 1 as integers."""
    fraction: F64 = np.where(form == DOUBLE, value.view(np.float64), np.where(form == NUMBER, value, np.nan))
    fraction[~((fraction >= 0) & (fraction <= 1))] = np.nan
    return fraction


def _text(plane: Plane, inline_texts: list[bytes], value: I64, form: U8) -> Text:
    """Return the texts of a stat: inline in the event, or the name of the stat that the value refers to."""
    codes = np.where(form == TEXT, value, -1).astype(np.int32)
    referred = form == REFERENCE
    ids, which = np.unique(value[referred], return_inverse=True)
    codes[referred] = len(inline_texts) + which
    names = [plane.stat_names.get(i, "").encode() for i in ids.tolist()]
    return Text(codes, Strings.of_bytes([*inline_texts, *names]))
