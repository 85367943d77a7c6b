"""Watch files: curves of devices, true peaks, steps, and files whose writer was killed."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from support.watch_files import MIB, START_NS, saw_tooth, watch_bytes

from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.caveats import CaveatCode
from tb_memplugin.model.kinds import SpanKind
from tb_memplugin.model.recording import CaptureInfo, Recording, Sampling
from tb_memplugin.readers import open_file
from tb_memplugin.readers.watch_layout import CounterSource, DeviceColumn

SECOND = 10**9


def read(data: bytes) -> list[Recording]:
    (part,) = open_file(data, "/logs/host0_7.watch", run="run", host="host0_7")
    return part.read()


def samples(*in_use: int, peaks: tuple[int, ...] = ()) -> list[dict[DeviceColumn, int]]:
    found = [{DeviceColumn.IN_USE: used * MIB} for used in in_use]
    for counters, top in zip(found, peaks, strict=False):
        counters[DeviceColumn.PEAK] = top * MIB
    return found


def test_each_device_is_a_curve_with_its_capacity() -> None:
    first, second = read(watch_bytes({"cuda:0": saw_tooth(8), "cuda:1": saw_tooth(8, high=800 * MIB)}))
    assert (first.id, first.memory) == ("run|host0_7|watch|cuda:0", "cuda:0")
    assert usage(first).live.tolist() == [c[DeviceColumn.IN_USE] for c in saw_tooth(8)]
    assert (peak(second).bytes, second.capacity, second.reported_peak) == (800 * MIB, 1024 * MIB, 800 * MIB)
    assert first.clock is not None and first.clock.tolist() == [n * SECOND for n in range(8)]
    assert first.capture_info == CaptureInfo(START_NS)
    assert first.reported is not None and first.reported.fragmentation[0] == 0.5
    assert [caveat.code for caveat in first.caveats] == [CaveatCode.SAMPLED]


def test_a_peak_between_two_samples_is_on_the_curve() -> None:
    [recording] = read(watch_bytes({"cuda:0": samples(10, 20, 30, 20, peaks=(500, 500, 90, 95))}))
    # The counter has 500 from before, and is reset before the third sample; then 95 is reached between two samples.
    assert (usage(recording).live // MIB).tolist() == [10, 20, 30, 95, 20]
    assert recording.clock is not None
    assert recording.clock.tolist() == [0, SECOND, 2 * SECOND, 3 * SECOND - 1, 3 * SECOND]
    assert recording.reported_peak == 500 * MIB


def test_a_file_of_the_first_version_still_opens() -> None:
    header = (
        b'{"tb_memplugin_watch": 1, "start_ns": 7, "interval_ns": 5, "devices": [{"name": "d", "source": "torch"}]}'
    )
    [recording] = read(header + b"\n" + struct.pack("<9q", 8, 1, 3, 8, 40, 50, 100, -1, 60))
    assert recording.reported is not None and recording.reported.free.tolist() == [60]
    assert recording.ledger is not None and recording.ledger.name == ("Live", "Free"), "the limit is the size"
    assert recording.phases is None and not recording.is_live


GPU_PARTS = {"pool": 60, "own": 75, "used": 95, "total": 100, "process python (7)": 15}
HOST_PARTS = {"private": 30, "children": 5, "shm": 10, "shared": 4, "used": 60, "total": 400, "rss": 44}


def parts(device: str, sizes: dict[str, int], samples: int = 2) -> dict[tuple[str, str], list[int]]:
    return {(device, name): [size * MIB] * samples for name, size in sizes.items()}


def ledger_of(recording: Recording) -> dict[str, int]:
    assert recording.ledger is not None
    return dict(zip(recording.ledger.name, (recording.ledger.bytes[:, -1] // MIB).tolist(), strict=True))


def test_the_ledger_of_a_device_adds_up_to_its_size() -> None:
    [recording] = read(watch_bytes({"cuda:0": samples(40, 50)}, named=parts("cuda:0", GPU_PARTS)))
    expected = {
        "Live": 50,
        "Cache": 10,
        "Outside of the allocator": 15,
        "python (7)": 15,
        "Driver and other processes": 5,
    }
    assert ledger_of(recording) == {**expected, "Free": 5}
    assert recording.ledger is not None and (recording.ledger.used // MIB).tolist() == [95, 95]
    without = {"pool": 60, "used": 95, "total": 100}
    [recording] = read(watch_bytes({"cuda:0": samples(40, 50)}, named=parts("cuda:0", without)))
    rest = "Outside of the allocator, driver and other processes"
    assert ledger_of(recording) == {"Live": 50, "Cache": 10, rest: 35, "Free": 5}, "the process is unknown"
    [recording] = read(watch_bytes({"cuda:0": samples(40, 50)}))
    assert recording.ledger is None, "only the bytes in use are known"


def test_the_ledger_of_the_host_is_that_of_its_nearest_limit_and_it_is_no_device() -> None:
    host = [{DeviceColumn.IN_USE: 45 * MIB, DeviceColumn.LIMIT: 100 * MIB}] * 2
    content = {"host": host, "cuda:0": samples(40, 50)}
    device, found = read(watch_bytes(content, named=parts("host", HOST_PARTS)))
    expected = {"Private": 30, "Child processes": 5, "/dev/shm": 10, "Shared": 4, "Rest of the cgroup": 11, "Free": 40}
    assert ledger_of(found) == expected and found.memory == "host" and not found.is_main_memory
    assert device.is_main_memory and device.ledger is None
    assert found.reported is not None and (found.reported.free // MIB).tolist() == [40, 40]
    [_, found] = read(watch_bytes(content, named=parts("host", {**HOST_PARTS, "total": 100})))
    assert "Rest of the host" in ledger_of(found)


def test_impossible_parts_are_ignored_and_the_peak_of_a_phase_is_its_largest_sample() -> None:
    named = {("cuda:0", "phase train"): [-1, 70, 90, -1], ("cuda:0", "pool"): [2**60, -5, 80, 80]}
    [recording] = read(watch_bytes({"cuda:0": samples(10, 20, 30, 20)}, named=named))
    assert recording.phases is not None
    assert (recording.phases.name, recording.phases.bytes.tolist()) == (("train",), [90])
    assert recording.phases.position.tolist() == [2]
    assert CaveatCode.IMPOSSIBLE_BYTES in [caveat.code for caveat in recording.caveats]


def test_without_a_counter_of_the_peak_the_caveat_says_that_peaks_are_missed() -> None:
    [recording] = read(watch_bytes({"cpu:0": samples(1, 2)}, source=CounterSource.LIVE_ARRAYS))
    sampled, arrays = recording.caveats
    assert sampled.text == "Memory is read every 1 s. Shorter peaks are missed."
    assert arrays.code is CaveatCode.LIVE_ARRAYS and recording.reported_peak is None and recording.capacity is None


@pytest.mark.parametrize("finished", [False, True])
def test_a_file_is_live_until_its_writer_has_finished_it(finished: bool) -> None:
    [recording] = read(watch_bytes({"cuda:0": samples(1, 2, 3)}, finished=finished))
    assert recording.sampling == Sampling(SECOND, finished)
    assert recording.is_live is not finished


def test_the_interval_is_that_of_the_newest_samples() -> None:
    data = bytearray(watch_bytes({"cuda:0": samples(*range(20))}))
    width = (len(data) - data.index(b"\n") - 1) // 20
    for number in range(20):  # sampling has become expensive
        begin = len(data) - (20 - number) * width
        data[begin : begin + 8] = int(START_NS + 7 * SECOND * number).to_bytes(8, "little")
    [recording] = read(bytes(data))
    assert recording.sampling == Sampling(7 * SECOND, False)


def test_steps_are_spans_and_several_between_two_samples_are_one() -> None:
    data = watch_bytes({"cuda:0": samples(*range(6))}, steps={0: 3, 2: 4, 4: 9}, out_of_memory=True, finished=True)
    [recording] = read(data)
    assert recording.spans is not None
    spans = recording.spans
    assert [spans.name[row] for row in range(len(spans))] == ["step 3", "steps 4 to 8", "step 9", "out of memory"]
    assert (spans.start_ns // SECOND).tolist() == [0, 2, 4, 4]
    assert (spans.end_ns // SECOND).tolist() == [2, 4, 5, 4]
    assert spans.kind.tolist() == [SpanKind.STEP] * 3 + [SpanKind.OUT_OF_MEMORY]


@pytest.mark.parametrize("cut", [1, 8, 71, 72, 73])
def test_a_torn_last_record_is_left_out(cut: int) -> None:
    whole = watch_bytes({"cuda:0": samples(1, 2, 3, 4)})
    [recording] = read(whole[:-cut])
    assert recording.length == (3 if cut <= 72 else 2)


def test_a_machine_that_lost_power_leaves_zeros_which_are_left_out() -> None:
    whole = watch_bytes({"cuda:0": samples(1, 2, 3, 4)})
    [recording] = read(whole + bytes(720))
    assert recording.length == 4 and not recording.caveats[1:]


def test_a_clock_that_was_set_back_does_not_turn_the_curve_around() -> None:
    data = bytearray(watch_bytes({"cuda:0": samples(1, 2, 3)}))
    data[-72:-64] = int(START_NS + SECOND // 2).to_bytes(8, "little")
    [recording] = read(bytes(data))
    assert recording.clock is not None and (np.diff(recording.clock) >= 0).all()


def test_impossible_counters_are_unknown() -> None:
    [recording] = read(watch_bytes({"cuda:0": [*samples(1), {DeviceColumn.IN_USE: 1 << 62}, *samples(3)]}))
    assert (usage(recording).live // MIB).tolist() == [1, 3]
    assert recording.caveats[-1].code is CaveatCode.IMPOSSIBLE_BYTES


def test_a_header_alone_has_no_recordings_yet() -> None:
    assert read(watch_bytes({"cuda:0": []})) == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"x" + data, "Not a file of capture.watch"),
        (lambda data: data.replace(b"\n", b" ", 1), "Not a file of capture.watch"),
        (lambda data: b"[" * 100_000 + b"\n", "Not a file of capture.watch"),
        (lambda data: data.replace(b'watch": 2', b'watch": 9'), "another version"),
        (lambda data: data.replace(str(START_NS).encode(), b"-1"), "start_ns"),
        (lambda data: data.replace(b"memory_stats", b"guess"), "no name or an unknown source"),
        (lambda data: data.replace(b"cuda:1", b"cuda:0"), "several devices have one name"),
        (lambda data: b'{"tb_memplugin_watch": 1, "start_ns": 1, "interval_ns": 1, "devices": 3}\n', "no list"),
        (lambda data: data.replace(b'"columns": []', b'"columns": 3'), "no pairs of names"),
        (lambda data: data.replace(b'"columns": []', b'"columns": [["cuda:0", 1]]'), "no pairs of names"),
        (lambda data: data.replace(b'"columns": []', b'"columns": [["cuda:0"], "ab"]'), "no pairs of names"),
        (lambda data: data.replace(b"[]", json.dumps([["a", "b"]] * 257).encode()), "too many columns: 257"),
    ],
)
def test_damage_to_the_header_is_named(damage: object, message: str) -> None:
    data = watch_bytes({"cuda:0": samples(1), "cuda:1": samples(2)})
    with pytest.raises(InputError, match=message) as error:
        read(damage(data))  # type: ignore[operator]
    assert error.value.where == "/logs/host0_7.watch"
