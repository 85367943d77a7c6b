"""The events in which allocators say what they did, as columns: every one, in order of time over all threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import F64, I64, U8
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
# The same by older and other writers.
SPELLINGS = {"device_ordinal": "index_on_host", "address": "addr", "tensor_shapes": "shape"}
UNKNOWN = "any other stat"
COLUMNS = {name: number for number, name in enumerate((*NUMBERS, *TEXTS, FRACTION, UNKNOWN))}
UNUSED = {"id"}  # a running number; names that begin with _ are the tracer's own
MISSING = -(2**63)  # of a number that an event does not tell
MOST = 2**50  # bytes: no memory is larger
BEYOND = 2**62  # no address is; below, the end of an allocation is a number too

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class AllocatorEvents:
    """One row per event. Numbers are MISSING, texts empty and the fraction NaN where the event does not tell."""

    place: I64  # among the plane's allocator events, in file order
    line: I64  # of the plane: the thread
    time_ps: I64  # since the host's first line began
    began_ns: int  # when that was, on the profile's clock
    frees: Mask
    numbers: dict[str, I64]
    texts: dict[str, Text]
    fragmentation: F64  # 0..1
    impossible: Mask  # a figure in bytes is below 0 or above MOST, and so left out
    out_of_order: Mask  # earlier than the event before it on its thread
    unknown: Mask  # has a stat that is not read

    def __len__(self) -> int:
        return len(self.line)


def ids(plane: Plane) -> frozenset[int]:
    """The metadata ids of the plane's allocator events."""
    return frozenset(key for key, name in plane.event_names.items() if name in (ALLOCATION, DEALLOCATION))


def read(plane: Plane) -> AllocatorEvents | None:
    """Sorted by time, events of one instant in file order. None where the plane has none. ValueError if damaged."""
    kinds = {key: int(plane.event_names[key] == DEALLOCATION) for key in ids(plane)}
    if not kinds:
        return None
    found = collect(plane.data, kinds, _columns(plane), len(COLUMNS))
    line, offset = found["line"], found["offset_ps"]
    if not len(line):
        return None
    # Lines have a clock of their own: their timestamp, plus the event's offset. Since 1970, picoseconds overflow.
    began = int(found["line_timestamp_ns"].min())
    time = (found["line_timestamp_ns"] - began)[line] * 1000 + offset
    order = np.argsort(time, kind="stable")

    def cells(name: str) -> tuple[I64, U8]:
        column = COLUMNS[name]
        return found["value"][column][order], found["form"][column][order]

    numbers = {name: _number(*cells(name)) for name in NUMBERS}
    return AllocatorEvents(
        place=order,
        line=line[order],
        time_ps=time[order],
        began_ns=began,
        frees=found["kind"][order] == 1,
        numbers=numbers,
        texts={name: _text(plane, found["texts"][COLUMNS[name]], *cells(name)) for name in TEXTS},
        fragmentation=_fraction(*cells(FRACTION)),
        impossible=_without_impossible(numbers),
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


def _without_impossible(numbers: dict[str, I64]) -> Mask:
    """Makes what cannot be MISSING; the events that had such a figure in bytes."""
    address = numbers["addr"]
    address[(address < 0) | (address >= BEYOND)] = MISSING
    impossible = np.zeros(len(numbers["addr"]), dtype=bool)
    for name in BYTES:
        wrong = (numbers[name] != MISSING) & ((numbers[name] < 0) | (numbers[name] > MOST))
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
    """A whole number, 0 or 1, is written as an integer; NaN where it is no fraction."""
    fraction: F64 = np.where(form == DOUBLE, value.view(np.float64), np.where(form == NUMBER, value, np.nan))
    fraction[~((fraction >= 0) & (fraction <= 1))] = np.nan
    return fraction


def _text(plane: Plane, spelt_out: list[bytes], value: I64, form: U8) -> Text:
    """Spelt out in the event, or the name of a stat that it refers to."""
    codes = np.where(form == TEXT, value, -1).astype(np.int32)
    referred = form == REFERENCE
    ids, which = np.unique(value[referred], return_inverse=True)
    codes[referred] = len(spelt_out) + which
    names = [plane.stat_names.get(i, "").encode() for i in ids.tolist()]
    return Text(codes, Strings.of_bytes([*spelt_out, *names]))
