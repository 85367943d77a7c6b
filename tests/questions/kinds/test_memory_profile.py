"""The Memory Profile's first view: figures and usage recomputed from raw events, and from small logs."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.allocator_planes import REAL, Event, Log, events_of, recordings_of
from support.payload_decoder import decode
from support.recordings import Row
from support.recordings import recording as made
from support.servers import DATA
from werkzeug.test import Client

from tb_memplugin.analysis.usage.live_bytes import traffic
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.hosts.api import MemoryApp
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.kinds.first_view import first_view
from tb_memplugin.questions.kinds.verdict import verdict_text
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.questions.recording.tables import rows
from tb_memplugin.questions.recording.usage import holes, usage, usage_table
from tb_memplugin.readers.xplane.allocator.lifetimes import BEFORE

each_profile = pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)
Tables = dict[str, dict[str, list[Any]]]


@cache
def recordings(path: Path) -> dict[str, Recording]:
    return recordings_of(path)


def figures(recording: Recording) -> dict[str, int | None]:
    meta, _ = decode(first_view(recording))
    return {figure["key"]: figure["bytes"] for figure in meta["figures"]}


def bytes_of(events: list[Event]) -> list[int]:
    """Return the size of each event; a free without a size has its allocation's."""
    held: dict[int, int] = {}
    found = []
    for event in events:
        size = event.stats.get("allocation_bytes", held.get(event.stats["addr"]))
        assert size is not None
        held[event.stats["addr"]] = size
        found.append(size)
    return found


@each_profile
def test_every_figure(path: Path) -> None:
    for memory, events in events_of(path).items():
        recording, sizes = recordings(path)[memory], bytes_of(events)
        stats = [event.stats for event in events]
        used = [s["bytes_allocated"] + s["bytes_reserved"] for s in stats]
        top = used.index(max(used))
        allocated = [size for size, event in zip(sizes, events, strict=True) if not event.free]
        freed = [size for size, event in zip(sizes, events, strict=True) if event.free]
        before = stats[0]["bytes_allocated"] + (sizes[0] if events[0].free else -sizes[0])
        held: dict[int, int] = {}
        orphans = []
        for size, event in zip(sizes, events, strict=True):
            if held.pop(event.stats["addr"], None) is None and event.free:
                orphans.append(size)
            if not event.free:
                held[event.stats["addr"]] = size
        assert figures(recording) == {
            "live_peak": used[top],
            "capacity": max(u + s["bytes_available"] for u, s in zip(used, stats, strict=True)),
            "reported_peak": max(s["peak_bytes_in_use"] for s in stats),
            "heap": stats[top]["bytes_allocated"],
            "stack": stats[top]["bytes_reserved"],
            "free": stats[top]["bytes_available"],
            "fragmented": round(stats[top]["bytes_available"] * stats[top]["fragmentation"]),
            "largest_free": round(stats[top]["bytes_available"] * (1 - stats[top]["fragmentation"])),
            "freed_before": sum(orphans),
            "allocated": sum(allocated),
            "freed": sum(freed),
            "live_before": before,
            "never_freed": sum(held.values()),
        }
        meta, _ = decode(first_view(recording))
        assert meta["peak"]["position"] == top
        assert meta["verdict"]["used_bytes"] == used[top]
        labels = {figure["key"]: figure["label"] for figure in meta["figures"]}
        assert labels["freed_before"].endswith(f": {len(orphans):,}") and labels["never_freed"].endswith(
            f": {len(held):,}"
        )
        assert before + sum(allocated) - sum(freed) == stats[-1]["bytes_allocated"]


@each_profile
def test_the_curve_is_what_the_allocator_says_at_every_event(path: Path) -> None:
    for memory, events in events_of(path).items():
        _, tables = decode(first_view(recordings(path)[memory]))
        used = [e.stats["bytes_allocated"] + e.stats["bytes_reserved"] for e in events]
        assert tables["usage"]["live_max"] == tables["usage"]["live_min"] == used
        assert tables["usage"]["time_ns"] == [event.time_ps // 1000 for event in events]


@each_profile
@pytest.mark.parametrize("count", [1, 7, 100])
def test_coarser_curves_lose_no_peak_and_no_valley(path: Path, count: int) -> None:
    for memory, events in events_of(path).items():
        table = usage_table(recordings(path)[memory], 0, len(events), count)
        used = [e.stats["bytes_allocated"] + e.stats["bytes_reserved"] for e in events]
        starts = [int(position) for position in table["position"]]  # type: ignore[union-attr]
        assert len(starts) <= count
        for bucket, (start, end) in enumerate(zip(starts, [*starts[1:], len(used)], strict=True)):
            assert table["live_max"][bucket] == max(used[start:end])
            assert table["live_min"][bucket] == min(used[start:end])
            assert table["time_ns"][bucket] == events[start].time_ps // 1000


FIGURES = {
    "heap": "bytes_allocated",
    "stack": "bytes_reserved",
    "free": "bytes_available",
    "fragmentation": "fragmentation",
}


@each_profile
@pytest.mark.parametrize("count", [7, 5000])
def test_each_bucket_has_the_most_and_the_least_of_what_the_allocator_says(path: Path, count: int) -> None:
    for memory, events in events_of(path).items():
        _, tables = decode(usage(recordings(path)[memory], 0, len(events), count))
        table = tables["usage"]
        columns = {name: [event.stats[stat] for event in events] for name, stat in FIGURES.items()}
        columns["largest_free"] = [
            round(free * (1 - part)) for free, part in zip(columns["free"], columns["fragmentation"], strict=True)
        ]
        starts = [int(position) for position in table["position"]]
        for name, said in columns.items():
            parts = [said[start:end] for start, end in zip(starts, [*starts[1:], len(said)], strict=True)]
            assert table[f"{name}_max"] == [max(part) for part in parts]
            assert table[f"{name}_min"] == [min(part) for part in parts]


@each_profile
def test_the_largest_rows_at_the_peak_are_those_that_are_live_there(path: Path) -> None:
    for recording in recordings(path).values():
        meta, first = decode(first_view(recording))
        _, whole = decode(rows(recording))
        top, everything = meta["peak"]["position"], whole["rows"]
        live = [
            charge
            for start, end, charge in zip(everything["start"], everything["end"], everything["charge"], strict=True)
            if start <= top < end and charge
        ]
        assert first["rows"]["charge"] == sorted(live, reverse=True)[: len(first["rows"]["charge"])]
        assert len(first["rows"]["charge"]) == min(len(live), 512)


@each_profile
def test_each_position_is_an_event_and_what_no_row_explains_is_the_stack(path: Path) -> None:
    for memory, events in events_of(path).items():
        _, tables = decode(rows(recordings(path)[memory]))
        positions = tables["program"]
        assert positions["op"] == ["free" if event.free else "allocation" for event in events]
        assert positions["time_ns"] == [event.time_ps // 1000 for event in events]
        assert positions["unexplained"] == [event.stats["bytes_reserved"] for event in events]


@pytest.mark.skipif(not REAL, reason="the profiles beside the repository are not there")
def test_the_api_serves_them() -> None:
    client = Client(MemoryApp(Catalog(str(DATA / "xplane" / "xprof_demo_gpu_multi_worker"))))
    listed = client.get("/api/recordings", query_string={"run": "GPU-multi-worker"}).json
    assert listed is not None
    found = {entry["memory"]: entry for entry in listed["recordings"]}
    assert Counter(entry["kind"] for entry in listed["recordings"]) == {"allocator": 4}
    assert found["GPU_4_bfc"]["reported_peak_bytes"] == found["GPU_4_bfc"]["peak_bytes"] == 6_208_853_760
    answer = client.get("/api/memory_profile", query_string={"id": found["GPU_4_bfc"]["id"]})
    meta, tables = decode(answer.data)
    assert meta["recording"] == found["GPU_4_bfc"]
    assert max(tables["usage"]["live_max"]) == 6_208_853_760


def small() -> Recording:
    """Log 70 bytes from before, 20 of them freed; then 100 that stay and 8 freed; the last has a stack of 5."""
    log = Log()
    for second, (free, address, size, in_use, stack) in enumerate(
        [(True, 1, 20, 50, 0), (False, 2, 100, 150, 0), (False, 3, 8, 158, 5), (True, 3, 8, 150, 0)]
    ):
        log.add(
            free, second * 10**12, allocator_name="GPU_0_bfc", addr=address, allocation_bytes=size,
            requested_bytes=size, bytes_allocated=in_use, bytes_reserved=stack, bytes_available=1000 - in_use - stack, 
            fragmentation=0.25, peak_bytes_in_use=500,
        )  # fmt: skip
    return log.only()


def test_a_small_log() -> None:
    assert figures(small()) == {
        "live_peak": 163, "capacity": 1000, "reported_peak": 500, "heap": 158, "stack": 5, "free": 837,
        "fragmented": 209, "largest_free": 628, "allocated": 108, "freed": 28, "freed_before": 20, "live_before": 70,
        "never_freed": 100,
    }  # fmt: skip
    meta, tables = decode(first_view(small()))
    assert verdict_text(meta["verdict"]) == "163 B of 0.98 KiB"
    assert tables["rows"]["charge"] == [100, 50, 8]
    assert tables["rows"]["name"][1] == BEFORE
    assert "stack" not in tables["rows"]  # names of stacks are made of all rows: api/rows has them
    assert [(c["code"], c["bytes"]) for c in meta["caveats"]] == [("live_before", 70)]
    assert meta["axis"] == {"kind": "TIME", "length": 4}
    assert summary(small())["peak_position"] == 2


def test_only_frees_count_as_frees() -> None:
    """Expect no pair: the event ends another allocation at its address, and is not its free."""
    log = Log()
    for free, time in ((False, 0), (False, 1), (True, 2)):
        log.add(free, time, allocator_name="a", addr=1, allocation_bytes=8)
    counted = traffic(log.only())
    assert (counted.allocations, counted.frees, counted.never_freed) == (2, 1, 0)
    assert (counted.allocated_bytes, counted.freed_bytes) == (16, 8)


def test_missing_allocator_figures_are_not_zero() -> None:
    log = Log().add(False, 0, allocator_name="a", addr=1, allocation_bytes=8, bytes_allocated=8)
    told = figures(log.only())
    assert [told[name] for name in ("capacity", "free", "reported_peak", "fragmented")] == [None] * 4
    assert (told["live_peak"], told["heap"]) == (8, 8)
    table = usage_table(log.only(), 0, 1, 1)
    assert all(math.isnan(table[f"{name}_max"][0]) for name in ("free", "fragmentation"))  # type: ignore[arg-type]
    assert (table["heap_max"][0], table["largest_free_max"][0]) == (8, 0)


def test_a_figure_that_some_events_do_not_tell_stays_what_it_was() -> None:
    log = Log()
    for time, told in enumerate([None, 90, None, 70]):
        stats = {} if told is None else {"bytes_available": told, "bytes_reserved": 3, "fragmentation": 0.5}
        log.add(False, time, allocator_name="a", addr=time, allocation_bytes=1, bytes_allocated=time + 1, **stats)
    recording = log.only()
    _, tables = decode(usage(recording, 0, 4, 4))
    assert tables["usage"]["free_max"] == [90, 90, 90, 70]
    assert tables["usage"]["stack_min"] == [3, 3, 3, 3]
    assert recording.capacity == 95
    assert "2 of 4 events" in next(c.text for c in recording.caveats if c.code == "free_missing")


def test_windows_and_holes_over_http() -> None:
    log = Log()
    for time, (free, address) in enumerate([(False, 0), (False, 8), (False, 32), (True, 8)]):
        log.add(free, time, allocator_name="a", addr=1000 + address, allocation_bytes=8)
    recording = log.only()
    client = client_of(recording)
    query = {"id": recording.id}
    meta, tables = decode(client.get("/api/usage", query_string={**query, "from": 1, "to": 3, "buckets": 2}).data)
    assert meta == {"from": 1, "to": 3}
    assert tables["usage"]["position"] == [1, 2]
    assert tables["usage"]["largest_free_min"] == [8, 0]
    answer = client.get("/api/holes", query_string={**query, "at": 3}).json
    assert answer == {
        "at": 3,
        "holes": [{"region": 0, "offset": 8, "size": 8, "below": 0, "above": None}],
        "holes_total": 1,
        "holes_bytes": 8,
        "live_bytes": 16,
        "unplaced_bytes": 0,
        "largest_free": 8,
        "fragmented": 0,
        "told": False,
    }
    edges = client.get("/api/holes", query_string={**query, "at": 0}).json
    assert edges is not None
    assert edges["holes"] == [
        {"region": 0, "offset": 8, "size": 8, "below": 0, "above": None},
        {"region": 0, "offset": 32, "size": 8, "below": None, "above": None},
    ]
    before = client.get("/api/holes", query_string={**query, "at": -1}).json
    assert before is not None and (before["largest_free"], before["holes_bytes"]) == (None, 24)
    for wrong in ("4", "-2", "x", ""):
        assert client.get("/api/holes", query_string={**query, "at": wrong}).status_code == 400


def client_of(recording: Recording) -> Client:
    """Return the app with one recording."""

    class One(Catalog):
        def recording(self, recording_id: str) -> Recording:
            assert recording_id == recording.id
            return recording

    return Client(MemoryApp(One("/nowhere")))


def test_holes_beyond_what_is_listed_are_counted() -> None:
    rows = [Row(8, 0, 1, 0, 16 * i) for i in range(300)]
    answer = holes(made(rows, 1, [(16 * 299 + 8, RegionKind.TEMPORARY)]), 0)
    assert (len(answer["holes"]), answer["holes_total"], answer["holes_bytes"]) == (200, 299, 299 * 8)
