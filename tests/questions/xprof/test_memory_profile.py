"""XProf's JSON from our Recordings, against XProf's stored answers on real profiles, and from small logs."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from support.allocator_planes import REAL, Log, events_of, recordings_of
from support.json_kinds import kinds
from support.recordings import recording
from support.servers import DATA, DEMO
from support.xprof_server import PREFIX, serving
from werkzeug.test import Client
from werkzeug.wrappers import Response

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.hosts import xprof
from tb_memplugin.protos.xplane_pb2 import XSpace
from tb_memplugin.questions.xprof import memory_profile as xprof_memory_profile
from tb_memplugin.questions.xprof.memory_profile import MAX_SNAPSHOTS, memory_profile

GPU_DEMO = "xprof_demo_gpu_multi_worker"
Json = dict[str, Any]

each_profile = pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)


def stored(path: Path) -> Json:
    """Return the answer of XProf 2.24.2 for the profile."""
    (file,) = (DATA / "xprof_2.24.2_answers" / path.parents[3].name).glob("memory_profile.*.json.gz")
    with gzip.open(file) as content:
        answer: Json = json.load(content)
    return answer


@cache
def answered(path: Path) -> Json:
    """Return our answer, after a round trip through JSON text."""
    answer: Json = json.loads(json.dumps(memory_profile(list(recordings_of(path).values())), allow_nan=False))
    return answer


@cache
def pairs(path: Path) -> list[tuple[str, Json, Json]]:
    """Return, per memory, its name in the raw events, our answer and XProf's."""
    ours, theirs = answered(path)["memoryProfilePerAllocator"], stored(path)["memoryProfilePerAllocator"]
    assert set(ours) == set(theirs)
    return [(f"TPU core {name}" if name.isdigit() else name, ours[name], theirs[name]) for name in ours]


def in_use(snapshot: Json) -> int:
    stats = snapshot["aggregationStats"]
    return int(stats["stackReservedBytes"]) + int(stats["heapAllocatedBytes"])


@each_profile
def test_fields_and_their_types_are_xprof_s(path: Path) -> None:
    def without_names(answer: Json) -> dict[str, set[str]]:
        answer = {**answer, "memoryProfilePerAllocator": list(answer["memoryProfilePerAllocator"].values())}
        return kinds({name: value for name, value in answer.items() if value})

    ours, theirs = without_names(answered(path)), without_names(stored(path))
    assert {name: kind for name, kind in ours.items() if name in theirs} == theirs
    # XProf lists no program calls except those that a TPU logs itself.
    assert {name for name in ours if name not in theirs} <= {name for name in ours if ".hloModules" in name}


@each_profile
def test_memories_are_xprof_s(path: Path) -> None:
    ours, theirs = answered(path), stored(path)
    assert sorted(ours["memoryIds"]) == sorted(theirs["memoryIds"])
    assert list(ours["memoryProfilePerAllocator"]) == ours["memoryIds"]
    assert (ours["numHosts"], ours["version"]) == (theirs["numHosts"], theirs["version"])


@each_profile
def test_every_event_is_a_snapshot_with_the_raw_figures(path: Path) -> None:
    """Compare as sets: XProf sorts by the offset in a line, and misorders lines that began at different times."""
    raw = events_of(path)
    for memory, ours, theirs in pairs(path):
        snapshots = ours["sampledTimelineSnapshots"]
        assert len(snapshots) == len(raw[memory]) == len(theirs["sampledTimelineSnapshots"])
        for snapshot, event in zip(snapshots, raw[memory], strict=True):
            stats = event.stats
            assert int(snapshot["timeOffsetPs"]) == event.time_ps // 1000 * 1000
            assert snapshot["aggregationStats"] == {
                "stackReservedBytes": str(stats["bytes_reserved"]),
                "heapAllocatedBytes": str(stats["bytes_allocated"]),
                "freeMemoryBytes": str(stats["bytes_available"]),
                "fragmentation": stats["fragmentation"],
                "peakBytesInUse": str(stats["peak_bytes_in_use"]),
            }
            activity = snapshot["activityMetadata"]
            assert activity["memoryActivity"] == ("DEALLOCATION" if event.free else "ALLOCATION")
            assert int(activity["address"]) == stats["addr"]
            if "allocation_bytes" in stats:
                assert int(activity["allocationBytes"]) == stats["allocation_bytes"]
                assert int(activity["requestedBytes"]) == stats["requested_bytes"]
        by_offset = Counter(str(event.line_offset_ps) for event in raw[memory])
        assert Counter(snapshot["timeOffsetPs"] for snapshot in theirs["sampledTimelineSnapshots"]) == by_offset


@each_profile
def test_snapshots_are_xprof_s_but_for_its_defects(path: Path) -> None:
    """Compare snapshots except for XProf's defects.

    XProf gives frees on TPU no size, knows only the runtime's names, and invents step numbers in profiles without
    steps. Where it misorders events, the figures are equal but in another order.
    """
    for _, ours, theirs in pairs(path):
        left, right = ours["sampledTimelineSnapshots"], theirs["sampledTimelineSnapshots"]
        assert Counter(map(figures, left)) == Counter(map(figures, right))
        if [snapshot["timeOffsetPs"] for snapshot in left] != [snapshot["timeOffsetPs"] for snapshot in right]:
            continue
        for our, their in zip(left, right, strict=True):
            assert our["aggregationStats"] == their["aggregationStats"]
            mine, other = our["activityMetadata"], their["activityMetadata"]
            different = {name for name in mine if mine[name] != other[name]}
            if other["tfOpName"] in ("", "dummy", "(null)"):
                different.discard("tfOpName")
            if mine["memoryActivity"] == "DEALLOCATION" and other["allocationBytes"] == "0":
                different -= {"allocationBytes", "requestedBytes"}
            assert different <= {"stepId"}, (mine, other)


def figures(snapshot: Json) -> tuple[Any, ...]:
    return (*snapshot["aggregationStats"].values(), snapshot["activityMetadata"]["memoryActivity"])


@each_profile
def test_the_peak_and_its_figures(path: Path) -> None:
    """Allow for XProf's last position of the peak, and ours, the first; its lifetime peak is its last event's."""
    raw = events_of(path)
    for memory, ours, theirs in pairs(path):
        our, their = ours["profileSummary"], theirs["profileSummary"]
        events = raw[memory]
        top = max(e.stats["bytes_allocated"] + e.stats["bytes_reserved"] for e in events)
        first = next(e for e in events if e.stats["bytes_allocated"] + e.stats["bytes_reserved"] == top)
        assert int(our["peakStats"]["peakBytesInUse"]) == top == int(their["peakStats"]["peakBytesInUse"])
        assert int(our["peakStatsTimePs"]) == first.time_ps // 1000 * 1000
        assert our["memoryCapacity"] == their["memoryCapacity"] == str(top + first.stats["bytes_available"])
        for name in ("stackReservedBytes", "heapAllocatedBytes"):
            assert our["peakStats"][name] == their["peakStats"][name]
        lifetime = max(e.stats["peak_bytes_in_use"] for e in events)
        assert int(our["peakBytesUsageLifetime"]) == lifetime >= int(their["peakBytesUsageLifetime"])


def test_the_modules_of_tpu_cores_are_xprof_s() -> None:
    """Shift the clock: XProf ignores the start times of the host's lines, which differ from other planes'."""
    path = next((path for path in REAL if path.parents[3].name == "xprof_tpu_inference_2_old"), None)
    if path is None:
        pytest.skip("the profiles beside the repository are not there")
    recordings = [r for r in listing_of_path(str(path)).recordings if r.kind == "allocator"]
    mine, theirs = memory_profile(recordings)["hloModules"], stored(path)["hloModules"]
    began = 212_990_000  # ps, of the host's lines
    assert len(mine) == len(theirs) == 414
    for found, expected in zip(mine, theirs, strict=True):
        assert [found[name] for name in ("name", "id", "planeName")] == [
            expected[name] for name in ("name", "id", "planeName")
        ]
        for name in ("startTimePs", "endTimePs"):
            assert int(found[name]) == (int(expected[name]) - began) // 1000 * 1000


def test_the_lifetime_peak_that_xprof_loses() -> None:
    """Check XProf's bug: the last event it visits is not the latest, because it visits one thread after the other."""
    path = next((path for path in REAL if path.parents[3].name == GPU_DEMO), None)
    if path is None:
        pytest.skip("the profiles beside the repository are not there")
    peaks = {
        memory: tuple(int(profile["profileSummary"]["peakBytesUsageLifetime"]) for profile in both)
        for memory, *both in pairs(path)
    }
    assert peaks["GPU_4_bfc"] == (6_208_853_760, 5_006_386_688)
    assert all(ours == theirs for memory, (ours, theirs) in peaks.items() if memory != "GPU_4_bfc")


@each_profile
def test_what_is_live_at_the_peak_adds_up_and_is_what_a_replay_leaves(path: Path) -> None:
    """Check that XProf replays only the events of the peak's step, and calls the rest unused memory."""
    raw = events_of(path)
    for memory, ours, _ in pairs(path):
        rows = live_at_peak(ours)
        assert sum(size * count for (_, size), count in rows.items()) == int(
            ours["profileSummary"]["peakStats"]["peakBytesInUse"]
        )
        held: dict[int, int] = {}
        for event in raw[memory]:
            if event.time_ps // 1000 * 1000 > int(ours["profileSummary"]["peakStatsTimePs"]):
                break
            if event.free:
                held.pop(event.stats["addr"], None)
            else:
                held[event.stats["addr"]] = event.stats["allocation_bytes"]
        allocated = Counter({size: count for (special, size), count in rows.items() if not special})
        assert allocated == Counter(held.values())
        sizes = [size for _, size in rows]
        assert sizes == sorted(sizes, reverse=True)


def live_at_peak(profile: Json) -> dict[tuple[str, int], int]:
    """Map (name of a special row or "", bytes of one) to the count, in the answer's order."""
    rows: dict[tuple[str, int], int] = {}
    for active in profile["activeAllocations"]:
        snapshot, special = int(active["snapshotIndex"]), int(active["specialIndex"])
        assert (snapshot < 0) == (special >= 0)
        data = (
            profile["specialAllocations"][special]
            if special >= 0
            else profile["memoryProfileSnapshots"][snapshot]["activityMetadata"]
        )
        key = (data["tfOpName"] if special >= 0 else "", int(data["allocationBytes"]))
        rows[key] = rows.get(key, 0) + int(active["numOccurrences"])
    return rows


def two_steps() -> Log:
    """Log 30 bytes from before; 100 twice, 50 freed again, then 7 that are still live; a stack of 1000 at the peak."""
    common = {"allocator_name": "GPU_0_bfc", "fragmentation": 0.5, "peak_bytes_in_use": 900, "tf_op": "step"}
    log = Log().line(timestamp_ns=5)
    in_use = 30
    for time, (size, address, stack) in enumerate([(100, 1, 0), (100, 2, 0), (50, 3, 1000), (-50, 3, 0), (7, 3, 0)]):
        in_use += size
        log.add(
            size < 0, time * 1000, **common, addr=address, allocation_bytes=abs(size), requested_bytes=abs(size) - 1,
            bytes_allocated=in_use, bytes_reserved=stack, bytes_available=5000 - in_use - stack, data_type=1,
            shape="[3]", region_type="dynamic",
        )  # fmt: skip
    return log


def test_a_small_log() -> None:
    profile = memory_profile(two_steps().read())["memoryProfilePerAllocator"]["GPU_0_bfc"]
    assert profile["profileSummary"] == {
        "peakBytesUsageLifetime": "900",
        "peakStats": {
            "stackReservedBytes": "1000",
            "heapAllocatedBytes": "280",
            "freeMemoryBytes": "3720",
            "fragmentation": 0.5,
            "peakBytesInUse": "1280",
        },
        "peakStatsTimePs": "2000",
        "memoryCapacity": "5000",
    }
    assert live_at_peak(profile) == {
        ("stack", 1000): 1,
        ("", 100): 2,
        ("", 50): 1,
        ("live before the recording", 30): 1,
    }
    assert profile["sampledTimelineSnapshots"][3] == {
        "timeOffsetPs": "3000",
        "aggregationStats": {
            "stackReservedBytes": "0",
            "heapAllocatedBytes": "230",
            "freeMemoryBytes": "4770",
            "fragmentation": 0.5,
            "peakBytesInUse": "900",
        },
        "activityMetadata": {
            "memoryActivity": "DEALLOCATION",
            "requestedBytes": "49",
            "allocationBytes": "50",
            "address": "3",
            "tfOpName": "step",
            "stepId": "0",
            "regionType": "dynamic",
            "dataType": "float",
            "tensorShape": "[3]",
        },
    }


def test_steps_count_from_the_first_that_is_marked() -> None:
    log = two_steps()
    steps = log.line(timestamp_ns=5).plane
    steps.event_metadata[9].name = b"train"
    steps.stat_metadata[99].name = b"step_num"
    for number, start in enumerate((500, 2500)):
        event = steps.lines[-1].events.add(metadata_id=9, offset_ps=start * 1000, duration_ps=1_500_000)
        event.stats.add(metadata_id=99, int64_value=40 + number)
    for event, time in zip(steps.lines[0].events, (0, 1, 2, 3, 4), strict=True):
        event.offset_ps = time * 1_000_000
    snapshots = memory_profile(log.read())["memoryProfilePerAllocator"]["GPU_0_bfc"]["sampledTimelineSnapshots"]
    assert [snapshot["activityMetadata"]["stepId"] for snapshot in snapshots] == ["0", "0", "0", "1", "1"]


@pytest.mark.slow
def test_a_long_log_keeps_peaks_and_valleys() -> None:
    """Check XProf's sampling: it keeps the fullest position of each stretch, and so loses nearly all frees."""
    log = Log()
    for number in range(3 * MAX_SNAPSHOTS // 2):
        for free in (False, True):
            size = 10**6 if number == 777 else 1
            used = 0 if free else size
            log.add(
                free, (2 * number + free) * 1000, index_on_host=0, addr=1, allocation_bytes=size, bytes_allocated=used
            )
    snapshots = memory_profile(log.read())["memoryProfilePerAllocator"]["0"]["sampledTimelineSnapshots"]
    assert MAX_SNAPSHOTS / 2 < len(snapshots) <= MAX_SNAPSHOTS
    assert max(map(in_use, snapshots)) == 10**6
    kinds = Counter(snapshot["activityMetadata"]["memoryActivity"] for snapshot in snapshots)
    assert abs(kinds["ALLOCATION"] - kinds["DEALLOCATION"]) <= 1
    times = [int(snapshot["timeOffsetPs"]) for snapshot in snapshots]
    assert times == sorted(set(times))


def test_nan_is_text() -> None:
    log = Log().add(
        False, 0, allocator_name="a", addr=1, allocation_bytes=1, bytes_allocated=1, fragmentation=float("nan")
    )
    (snapshot,) = memory_profile(log.read())["memoryProfilePerAllocator"]["a"]["sampledTimelineSnapshots"]
    assert snapshot["aggregationStats"]["fragmentation"] == "NaN"


def test_nothing_and_a_program() -> None:
    nothing = {"memoryProfilePerAllocator": {}, "numHosts": 1, "memoryIds": [], "version": 1, "hloModules": []}
    assert memory_profile([]) == nothing
    with pytest.raises(InputError, match="Memory Viewer"):
        memory_profile([recording([], 1)])


def stock(environ: Any, start_response: Any) -> Any:
    return Response("stock data")(environ, start_response)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return two hosts of one run, the second fuller; a run without allocators; a damaged run."""
    for run, host, size in (("two", "a", 1), ("two", "b", 2), ("none", "c", 0)):
        folder = tmp_path / "plugins/profile" / run
        folder.mkdir(parents=True, exist_ok=True)
        log = Log()
        if size:
            log.add(False, 0, index_on_host=0, addr=1, allocation_bytes=size, bytes_allocated=size)
        (folder / f"{host}.xplane.pb").write_bytes(XSpace(planes=[log.plane]).SerializeToString())
    (tmp_path / "plugins/profile/damaged").mkdir()
    (tmp_path / "plugins/profile/damaged/d.xplane.pb").write_bytes(b"not a profile at all")
    return tmp_path


def ask(logs: Path, parameters: dict[str, str], *, tested: bool = True) -> Any:
    client = Client(xprof.XProfApp(stock, str(logs), tested=tested))
    return client.get("/data/plugin/profile/data", query_string={"tag": "memory_profile", **parameters})


@pytest.mark.parametrize(("host", "peak"), [("a", "1"), ("b", "2"), ("", "2"), ("ALL_HOSTS", "2"), (None, "2")])
def test_xprof_s_question_is_answered_for_a_host(logs: Path, host: str | None, peak: str) -> None:
    answer = ask(logs, {"run": "two", **({"host": host} if host is not None else {})})
    assert answer.status_code == 200
    assert answer.content_type.startswith("application/json")
    profile = answer.json["memoryProfilePerAllocator"]["0"]
    assert profile["profileSummary"]["peakStats"]["peakBytesInUse"] == peak
    assert answer.json["memoryIds"] == ["0"]


def test_a_run_without_allocators_is_answered_too(logs: Path) -> None:
    assert ask(logs, {"run": "none"}).json["memoryIds"] == []


def test_xprof_answers_where_we_cannot(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(logs, {"run": "damaged"}).text == "stock data"
    assert ask(logs, {"run": "two"}, tested=False).text == "stock data"
    assert ask(DEMO, {"session_path": "/elsewhere"}).text == "stock data"

    def fail(*_: object) -> Json:
        raise ZeroDivisionError

    monkeypatch.setattr(xprof_memory_profile, "memory_profile", fail)
    assert ask(logs, {"run": "two"}).text == "stock data"


@pytest.mark.skipif(not REAL, reason="the profiles beside the repository are not there")
def test_xprof_s_own_server_answers_with_our_numbers(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(DATA / "xplane" / GPU_DEMO, logs)
    with serving(logs, tmp_path) as server:
        asked = {"tag": "memory_profile", "run": "GPU-multi-worker", "host": "34.83.195.179_6003"}
        answer = server.get(f"{PREFIX}data?{urlencode(asked)}")
    assert answer.status == 200
    content = json.loads(answer.body)
    assert content["memoryProfilePerAllocator"]["GPU_4_bfc"]["profileSummary"]["peakBytesUsageLifetime"] == "6208853760"
    assert content == next(answered(path) for path in REAL if path.parents[3].name == GPU_DEMO) | {
        "memoryIds": ["GPU_6_bfc", "GPU_4_bfc", "GPU_1_bfc", "gpu_host_bfc"]  # the fullest first
    }


@pytest.mark.parametrize("wrong", [{"run": "no such run"}, {"run": "two", "host": "no such host"}])
def test_what_is_not_there_is_404_in_words(logs: Path, wrong: dict[str, str]) -> None:
    answer = ask(logs, wrong)
    assert answer.status_code == 404
    assert re.search("no such", answer.text)
