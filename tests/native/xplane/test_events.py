"""The compiled scan for events, against protobuf's own parser and plain Python, on real and synthetic planes."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.growth import seconds_of
from support.profiles import profiles

from tb_memplugin.native.xplane.all_events import any_event, every
from tb_memplugin.native.xplane.events import select
from tb_memplugin.native.xplane.stats import INTEGER, MISSING, PRESENCE, REAL, TEXT, new_columns, read_stats
from tb_memplugin.protos.xplane_pb2 import XPlane, XSpace, XStat

same_each_time = settings(derandomize=True)

Columns = dict[str, list[Any]]


TYPES = [INTEGER, REAL, TEXT, PRESENCE]
DEFAULT = {INTEGER: MISSING, REAL: math.nan, TEXT: b"", PRESENCE: 0}


def plainly(plane: XPlane, kinds: dict[int, int], columns: dict[int, int]) -> Columns:
    """Return the expected result of select, and as `cells` that of read_stats, with columns of all types."""
    found: Columns = {name: [] for name in ("line", "offset_ps", "kind", "cells")}
    for number, line in enumerate(plane.lines):
        for event in line.events:
            if event.metadata_id in kinds:
                found["line"].append(number)
                found["offset_ps"].append(event.offset_ps)
                found["kind"].append(kinds[event.metadata_id])
                found["cells"].append(cells(event.stats, columns))
    found["line_name"] = [line.name for line in plane.lines]
    found["line_timestamp_ns"] = [line.timestamp_ns for line in plane.lines]
    found["line_events"] = [len(line.events) for line in plane.lines]
    return found


def cells(stats: Any, columns: dict[int, int]) -> list[Any]:
    """Use the last of several stats in one column; a stat without a value is ignored."""
    row: list[Any] = [repr(DEFAULT[type_of(column)]) for column in range(width(columns))]
    for stat in stats:
        form = stat.WhichOneof("value")
        if stat.metadata_id in columns and form is not None:
            column = columns[stat.metadata_id]
            row[column] = repr(cell(type_of(column), form, getattr(stat, form)))
    return row


def type_of(column: int) -> int:
    return TYPES[column % len(TYPES)]


def cell(kind: int, form: str, value: Any) -> Any:
    """Return a value in a column of this type; the default where it does not fit. A reference is an id."""
    if kind == PRESENCE:
        return 1
    if kind == TEXT:
        return value if isinstance(value, bytes) else bits(value) if form == "ref_value" else b""
    if form == "double_value":
        return value if kind == REAL else int(value) if abs(value) < 2**62 else MISSING
    if form in ("uint64_value", "int64_value"):
        return bits(value) if kind == INTEGER else float(bits(value))
    return DEFAULT[kind]


def bits(value: Any) -> Any:
    """Return a number as a signed 64-bit integer, and a text unchanged."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return struct.unpack("<q", struct.pack("<d", value))[0]
    return (value + 2**63) % 2**64 - 2**63


def width(columns: dict[int, int]) -> int:
    return max(columns.values(), default=-1) + 1


def compiled(data: bytes, kinds: dict[int, int], columns: dict[int, int]) -> Columns:
    found = select(data, kinds)
    types = [type_of(column) for column in range(width(columns))]
    read = new_columns(len(found["start"]), types, set(columns.values()))
    texts = read_stats(data, found["start"], found["length"], columns, read)
    rows = [
        [
            repr((b"" if value < 0 else texts[column][value]) if types[column] == TEXT else value)
            for column, value in enumerate(cells)
        ]
        for cells in zip(*(column.tolist() for column in read), strict=True)
    ]
    same = ("line", "offset_ps", "kind", "line_timestamp_ns", "line_events")
    return {
        **{name: found[name].tolist() for name in same},
        "cells": rows if read else [[]] * len(found["line"]),
        "line_name": line_names(data, found),
    }


def line_names(data: bytes, found: dict[str, Any]) -> list[bytes]:
    names = found["line_name"]
    return [data[s : s + n] for s, n in zip(names.start.tolist(), names.length.tolist(), strict=True)]


def every_plainly(plane: XPlane, kinds: dict[int, int], columns: dict[int, int]) -> Columns:
    """Return the expected result of every."""
    events = [event for line in plane.lines for event in line.events]
    stats = [
        (owner, columns[stat.metadata_id], bits(getattr(stat, form)))
        for owner, event in enumerate(events)
        for stat in event.stats
        if (form := stat.WhichOneof("value")) in ("uint64_value", "int64_value", "ref_value")
        and stat.metadata_id in columns
    ]
    return {
        "offset_ps": [event.offset_ps for event in events],
        "duration_ps": [event.duration_ps for event in events],
        "kind": [kinds.get(event.metadata_id, -1) for event in events],
        "stats": stats,
        "line_name": [line.name for line in plane.lines],
        "line_timestamp_ns": [line.timestamp_ns for line in plane.lines],
        "line_events": [len(line.events) for line in plane.lines],
    }


def every_compiled(data: bytes, kinds: dict[int, int], columns: dict[int, int]) -> Columns:
    found = every(data, kinds, columns)
    same = ("offset_ps", "duration_ps", "kind", "line_timestamp_ns", "line_events")
    stats = list(zip(*(found[name].tolist() for name in ("owner", "column", "value")), strict=True))
    return {**{name: found[name].tolist() for name in same}, "stats": stats, "line_name": line_names(data, found)}


@pytest.mark.slow
@pytest.mark.parametrize("path", profiles(), ids=lambda path: path.parents[3].name)
def test_every_event_of_every_plane(path: Path) -> None:
    """Select all stats with rare names, including the allocator's, and all columns of the lines."""
    for plane in XSpace.FromString(path.read_bytes()).planes:
        counts: dict[int, int] = {}
        for line in plane.lines:
            for event in line.events:
                counts[event.metadata_id] = counts.get(event.metadata_id, 0) + 1
        kinds = {key: number for number, key in enumerate(sorted(counts, key=counts.__getitem__)) if counts[key] < 5000}
        columns = {key: number % 20 for number, key in enumerate(sorted(plane.stat_metadata))}
        data = plane.SerializeToString()
        assert compiled(data, kinds, columns) == plainly(plane, kinds, columns)
        assert every_compiled(data, kinds, columns) == every_plainly(plane, kinds, columns)
        assert any_event(data) == bool(counts)


small = st.integers(0, 3)
numbers = st.integers(-(2**63), 2**63 - 1)
values = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"double_value": st.floats()}),
    st.fixed_dictionaries({"uint64_value": st.integers(0, 2**64 - 1)}),
    st.fixed_dictionaries({"int64_value": numbers}),
    st.fixed_dictionaries({"str_value": st.binary(max_size=4)}),
    st.fixed_dictionaries({"bytes_value": st.binary(max_size=4)}),
    st.fixed_dictionaries({"ref_value": small}),
)


@st.composite
def planes(draw: st.DrawFn) -> XPlane:
    plane = XPlane(id=draw(small), name=draw(st.binary(max_size=3)))
    for _ in range(draw(small)):
        line = plane.lines.add(name=draw(st.binary(max_size=3)), timestamp_ns=draw(numbers))
        for _ in range(draw(small)):
            event = line.events.add(metadata_id=draw(small), offset_ps=draw(numbers), duration_ps=draw(numbers))
            event.stats.extend(XStat(metadata_id=draw(small), **draw(values)) for _ in range(draw(small)))
    return plane


wanted = st.dictionaries(small, small, max_size=3)


@same_each_time
@given(planes(), wanted, wanted)
def test_made_planes(plane: XPlane, kinds: dict[int, int], columns: dict[int, int]) -> None:
    data = plane.SerializeToString()
    assert compiled(data, kinds, columns) == plainly(plane, kinds, columns)
    assert every_compiled(data, kinds, columns) == every_plainly(plane, kinds, columns)
    assert any_event(data) == any(line.events for line in plane.lines)


def test_an_empty_plane_has_no_events() -> None:
    found = select(b"", {1: 0})
    assert len(found["line"]) == len(found["line_timestamp_ns"]) == 0
    columns = new_columns(0, TYPES, {0, 2})
    texts = read_stats(b"", found["start"], found["length"], {1: 0, 2: 2}, columns)
    assert [len(column) for column in columns] == [0] * 4 and texts == [[]] * 4
    assert len(every(b"", {1: 0}, {})["kind"]) == 0
    assert not any_event(b"")


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, -1), (0, 2**40), (2**62, 2**62), (10**6, 0), (1, 10**6)])
def test_events_outside_of_the_plane_are_refused(start: int, length: int) -> None:
    with pytest.raises(ValueError, match="damaged"):
        read_stats(EVENTS, np.array([start]), np.array([length]), {2: 0}, new_columns(1, [INTEGER], {0}))


def test_columns_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rows for 1 events"):
        read_stats(EVENTS, np.array([0]), np.array([0]), {2: 0}, new_columns(2, [INTEGER], {0}))


@pytest.mark.parametrize("key", [0, 2**16 - 1, 2**16, 2**62, -1])
def test_ids_far_from_1(key: int) -> None:
    """Use large numbers: ordinary writers use small ones, but any are valid."""
    plane = XPlane()
    for metadata in (key, key + 1):
        event = plane.lines.add().events.add(metadata_id=metadata)
        event.stats.add(metadata_id=key, int64_value=5)
    data = plane.SerializeToString()
    found = select(data, {key: 3})
    assert found["kind"].tolist() == [3]
    columns = new_columns(1, [INTEGER], {0})
    read_stats(data, found["start"], found["length"], {key: 0}, columns)
    assert columns[0].tolist() == [5]
    assert every(data, {key: 3}, {key: 4})["kind"].tolist() == [3, -1]
    assert every(data, {key: 3}, {key: 4})["column"].tolist() == [4, 4]


def one_event() -> bytes:
    plane = XPlane()
    event = plane.lines.add(name=b"main", timestamp_ns=7).events.add(metadata_id=1)
    event.stats.extend([XStat(metadata_id=2, str_value=b"GPU_0_bfc"), XStat(metadata_id=3, int64_value=-1)])
    return plane.SerializeToString()


EVENTS = one_event()
EVENT = XPlane.FromString(EVENTS).lines[0].events[0].SerializeToString()


@pytest.mark.parametrize("length", range(len(EVENTS) + 1))
def test_a_plane_cut_short_is_refused(length: int) -> None:
    """Cut inside a field: every cut except those just before and after the line is inside one."""
    if length in (0, len(EVENTS)):
        assert len(select(EVENTS[:length], {1: 0})["line"]) == (length > 0)
        assert len(every(EVENTS[:length], {}, {})["kind"]) == (length > 0)
    else:
        with pytest.raises(ValueError, match="damaged"):
            select(EVENTS[:length], {1: 0})
        with pytest.raises(ValueError, match="damaged"):
            every(EVENTS[:length], {}, {})


@same_each_time
@given(st.binary(max_size=40))
def test_noise_is_refused_or_read(noise: bytes) -> None:
    answers_or_refuses(noise)


@same_each_time
@given(planes(), st.data())
def test_a_flipped_byte_is_refused_or_read(plane: XPlane, data: st.DataObject) -> None:
    damaged = bytearray(plane.SerializeToString() or b"\0")
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    answers_or_refuses(bytes(damaged))


def answers_or_refuses(data: bytes) -> None:
    """Check that only the given bytes are read, and that every column has one row per event."""
    kinds, columns = {0: 0, 1: 1, 2: 2}, {0: 0, 1: 2, 2: 2, 3: 1}
    try:
        found, all_of_them = select(data, kinds), every(data, kinds, columns)
        read = new_columns(len(found["start"]), TYPES, set(columns.values()))
        texts = read_stats(data, found["start"], found["length"], columns, read)
    except ValueError:
        return
    events = len(found["line"])
    assert {len(found[name]) for name in ("offset_ps", "kind", "start", "length")} == {events}
    assert [len(column) for column in read] == [events] * 4
    assert ((read[2] >= -1) & (read[2] < len(texts[2]))).all()
    assert all(isinstance(text, int) or text in data for text in texts[2])
    assert not events or found["line"].max() < len(found["line_timestamp_ns"])
    assert len(all_of_them["kind"]) == found["line_events"].sum() == all_of_them["line_events"].sum()


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_damaged_stat_is_refused(cut: int) -> None:
    event = EVENT[:-cut]
    with pytest.raises(ValueError, match="damaged"):
        read_stats(event, np.array([0]), np.array([len(event)]), {2: 0}, new_columns(1, [TEXT], {0}))


def test_ids_of_a_file_cannot_make_its_tables_slow() -> None:
    """Without a salt, multiples of a table's size are all in one bucket: 60,000 of them took 250 times as long."""

    def read(step: int) -> None:
        select(b"", {70_000 + step * i: 1 for i in range(60_000)})

    assert min(seconds_of(read, 85_229) for _ in range(3)) < 20 * max(seconds_of(read, 100_003) for _ in range(2))
