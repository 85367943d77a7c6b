"""The parts of a watch: what it records, when it saves snapshots, and what it does where nothing can be written."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import numpy as np
import pytest
from support.fake_torch import FakeTorch
from support.watch_files import MIB, START_NS

from tb_memplugin.analysis.usage.live_bytes import usage
from tb_memplugin.capture.watching import counters, recorder, snapshots, watch
from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.capture.watching.curve import FULL, Curve, CurveFile
from tb_memplugin.capture.watching.host_memory import HostMemory
from tb_memplugin.capture.watching.recorder import SampleRecorder, WatchClock
from tb_memplugin.capture.watching.snapshots import GROWTH_RISES, WINDOW_SAMPLES, Triggers
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers import open_file
from tb_memplugin.readers.watch_layout import CounterSource, NamedColumn, RecordEvent, WatchedDevice

SECOND = 10**9
GPU = WatchedDevice("cuda:0", CounterSource.MEMORY_STATS)


@pytest.fixture(autouse=True)
def no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostMemory, "read", lambda memory: [])


def reading(in_use: int, limit: int = 1000 * MIB, device: WatchedDevice = GPU) -> Reading:
    return Reading(device, (in_use, in_use, limit, -1, -1))


def read(data: bytes) -> list[Recording]:
    (part,) = open_file(data, "x.watch")
    return part.read()


def add(curve: Curve, second: int, in_use: int, device: WatchedDevice = GPU) -> None:
    curve.add((START_NS + second * SECOND, 0, second, START_NS + second * SECOND), {device: (in_use, -1, -1, -1, -1)})


def test_a_long_curve_stays_bounded_and_keeps_its_peaks_and_its_newest_samples() -> None:
    curve, largest = Curve(START_NS, SECOND), 0
    seconds = 100_000
    for second in range(seconds):
        add(curve, second, 5000 if second == 777 else second % 10)
        largest = max(largest, curve.count)
    assert largest < 20_000
    [recording] = read(curve.content())
    live, clock = usage(recording).live, recording.clock
    assert clock is not None and (np.diff(clock) > 0).all()
    assert live.max() == 5000 and abs(clock[live.argmax()] / SECOND - 777) < 2 * seconds / FULL
    assert live[:100].min() == 0, "the floor is kept, too"
    assert clock[-FULL:].tolist() == [second * SECOND for second in range(seconds - FULL, seconds)]


def test_a_device_that_appears_later_has_a_curve_from_then_on() -> None:
    curve = Curve(START_NS, SECOND)
    add(curve, 0, 1)
    curve.add((START_NS + SECOND, 0, -1, -1), {GPU: (2,) * 5, WatchedDevice("cuda:1", CounterSource.TORCH): (3,) * 5})
    first, second = read(curve.content())
    assert (first.length, second.length) == (2, 1)


def test_named_columns_keep_their_values_when_devices_and_names_appear() -> None:
    curve, other = Curve(START_NS, SECOND), WatchedDevice("cuda:1", CounterSource.TORCH)
    names = [NamedColumn(device, name) for device in ("cuda:0", "cuda:1") for name in ("pool", "phase train")]
    for second in range(4):
        devices = {GPU: (5,) * 5} | ({other: (6,) * 5} if second > 1 else {})
        curve.add((START_NS + second * SECOND, 0, -1, -1), devices, dict.fromkeys(names[: second + 1], 10 + second))
    first, second_device = read(curve.content())
    for found, expected in ((first, [10, 11, 12, 13]), (second_device, [12, 13])):
        assert found.ledger is not None and found.ledger.bytes[:2].sum(axis=0).tolist() == expected
    assert first.phases is not None and (first.phases.bytes.tolist(), first.phases.position.tolist()) == ([13], [3])
    many = {NamedColumn("cuda:0", f"phase {number}\n" + "\u00e4" * 70): 7 for number in range(400)}
    curve.add((START_NS + 4 * SECOND, 0, -1, -1), {GPU: (5,) * 5}, many)
    [first, _] = read(curve.content())
    assert first.phases is not None and len(first.phases.name) == 253, "no file has more than 256 columns"


def test_a_process_with_more_devices_than_a_file_may_have_records_the_first_of_them() -> None:
    curve = Curve(START_NS, SECOND)
    devices = [WatchedDevice(f"cpu:{number}", CounterSource.LIVE_ARRAYS) for number in range(300)]
    for second in range(2):
        curve.add((START_NS + second * SECOND, 0, -1, -1), dict.fromkeys(devices, (7,) * 5))
    assert [recording.memory for recording in read(curve.content())] == [device.name for device in devices[:128]]


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let files have `size` bytes at most; the write that exceeds it writes what fits, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_whole_records_and_what_it_missed_follows(tmp_path: Path) -> None:
    curve, file = Curve(START_NS, SECOND), CurveFile(lambda: str(tmp_path / "x.watch"))
    add(curve, 0, 1)
    file.write(curve)
    with full_disk((tmp_path / "x.watch").stat().st_size + 100):
        for second in (1, 2, 3):
            add(curve, second, second + 1)
            with pytest.raises(OSError, match="File too large") if second > 1 else no_error():
                file.write(curve)
        [recording] = read((tmp_path / "x.watch").read_bytes())
        assert usage(recording).live.tolist() == [1, 2]
    add(curve, 4, 5)
    file.write(curve)
    assert (tmp_path / "x.watch").read_bytes() == curve.content()
    assert os.listdir(tmp_path) == ["x.watch"]


@contextmanager
def no_error() -> Iterator[None]:
    yield


def test_a_curve_that_was_thinned_replaces_its_file(tmp_path: Path) -> None:
    curve, file = Curve(START_NS, SECOND), CurveFile(lambda: str(tmp_path / "x.watch"))
    for second in range(20_000):
        add(curve, second, second)
        if second % 500 == 0 or second > 19_990:
            file.write(curve)
    assert (tmp_path / "x.watch").read_bytes() == curve.content()


def test_a_store_gets_the_whole_file_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    url, system = "memory://watch/x.watch", fsspec.filesystem("memory")
    curve, file = Curve(START_NS, SECOND), CurveFile(lambda: url)
    sizes = []
    for second in range(120):
        add(curve, second, second)
        now[0] += 1
        file.write(curve)
        sizes.append(len(system.cat_file(url)))
    assert len(set(sizes)) == 2
    file.write(curve, last=True)
    assert system.cat_file(url) == curve.content()


def reasons(
    levels: list[int], *, at: float = 0.9, limit: int = 1000 * MIB, step: bool = False
) -> list[tuple[int, str]]:
    """Return the samples at which a snapshot is due, and why, where each is saved at once."""
    triggers, found = Triggers(at), []
    for number, in_use in enumerate(levels):
        if reason := triggers.reason([reading(in_use * MIB, limit)], number // 10 if step else -1):
            triggers.saved()
            found.append((number, reason))
    return found


def test_nearly_full_is_said_once_and_again_after_each_further_percent() -> None:
    assert reasons([100, 899, 905, 905, 850, 905, 910, 915, 999]) == [
        (2, "90 % of capacity"),
        (7, "90 % of capacity"),
        (8, "90 % of capacity"),
    ]


def test_a_floor_that_grows_between_steps_is_a_reason_and_a_job_that_loads_is_none() -> None:
    window = WINDOW_SAMPLES + 10
    leak = [300 + number // 20 + 200 * (number % 10 > 4) for number in range(60 * window)]
    found = reasons(leak, step=True)
    assert [reason for _, reason in found] == ["growth", "growth"]
    assert found[0][0] > GROWTH_RISES * WINDOW_SAMPLES
    loads = [10] * window + [400] * window + [450 + 200 * (number % 10 > 4) for number in range(60 * window)]
    assert reasons(loads, step=True) == []


def test_without_a_capacity_growth_is_relative_to_the_floor() -> None:
    leak = [300 + number // 10 for number in range(3000)]
    found = reasons(leak, limit=-1)
    assert [reason for _, reason in found] == ["growth"] * 3
    assert reasons([905] * 3000, limit=-1) == []


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[Reading]:
    """Return the readings that a recorder gets."""
    found = [reading(100 * MIB)]
    monkeypatch.setattr(recorder, "read_devices", lambda: list(found))
    return found


def test_at_most_one_snapshot_a_minute_and_a_request_waits_for_its_turn(
    tmp_path: Path, devices: list[Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    recording = SampleRecorder(str(tmp_path), SECOND, 0.9, WatchClock())
    found = []
    for second in range(200):
        now[0] = float(second)
        devices[:] = [reading((700 + 2 * second) * MIB, 1000 * MIB)]
        recording.asked |= second == 10
        if reason := recording.sample((-1, -1)):
            recording.snapshot(reason, -1)
            found.append((second, reason))
    assert found == [(10, "signal"), (100, "90 % of capacity"), (160, "90 % of capacity")]


@pytest.mark.parametrize("where", ["a file", "/proc/nowhere", "s3x://bucket/x"])
def test_where_nothing_can_be_written_the_log_has_one_line_and_the_job_goes_on(
    where: str, tmp_path: Path, devices: list[Reading], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "device_profiles").touch()
    with watch(str(tmp_path) if where == "a file" else where, every=0.001) as watched:
        for number in range(20):
            watched.step(number)
            time.sleep(0.01)
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1 and "memory curve could not be written" in lines[0].getMessage()


class FakeDevice:
    """A device of JAX with the given answers of memory_stats(), the last of which is repeated."""

    platform = "gpu"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def __str__(self) -> str:
        return "cuda:0"

    def memory_stats(self) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def job_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeDevice], None]:
    """Return a function that makes a device the only one of JAX, which has no arrays."""

    def use(device: FakeDevice) -> None:
        jax = SimpleNamespace(local_devices=lambda: [device], device_count=lambda: 1, live_arrays=lambda platform: [])
        monkeypatch.setattr(counters, "started_jax", lambda: jax)

    return use


def test_a_counter_that_fails_does_not_end_the_curve(tmp_path: Path, job_with: Callable[[FakeDevice], None]) -> None:
    job_with(FakeDevice({"bytes_in_use": 5}, ValueError("lost"), {"bytes_in_use": 7}))
    recording = SampleRecorder(str(tmp_path), SECOND, 0.9, WatchClock())
    for _ in range(3):
        recording.sample((-1, -1))
    recording.close()
    [path] = tmp_path.rglob("*.watch")
    [found] = read(path.read_bytes())
    assert usage(found).live.tolist() == [5, 7]


# As jax 0.4 to 0.10 return them.
GPU_STATS = {
    "num_allocs": 222, "bytes_in_use": 3897557504, "peak_bytes_in_use": 32087482368,
    "largest_alloc_size": 25232940032, "bytes_limit": 35714334720, "bytes_reserved": 0, "peak_bytes_reserved": 0,
    "largest_free_block_bytes": 0, "pool_bytes": 35714334720, "peak_pool_bytes": 35714334720,
}  # fmt: skip
TPU_STATS = {
    "num_allocs": 1044, "bytes_in_use": 2353927680, "peak_bytes_in_use": 2353927680, "largest_alloc_size": 44040192,
    "bytes_limit": 16909332480, "bytes_reserved": 66560, "peak_bytes_reserved": 66560,
    "bytes_reservable_limit": 14573867008, "largest_free_block_bytes": 14555338240,
}  # fmt: skip


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        (GPU_STATS, (3897557504, 32087482368, 35714334720, -1, 0)),  # a GPU never counts its largest free block
        (TPU_STATS, (2353927680, 2353927680, 16909332480, 14555338240, 66560)),
        ({"bytes_in_use": 7, "bytes_limit": 2**64 - 1, "peak_bytes_in_use": -1}, (7, -1, -1, -1, -1)),
        ({"bytes_in_use": 7, "bytes_limit": None, "bytes_reserved": "1"}, (7, -1, -1, -1, -1)),
    ],
)
def test_counters_of_real_devices_and_impossible_ones(
    stats: dict[str, Any], expected: tuple[int, ...], job_with: Callable[[FakeDevice], None]
) -> None:
    job_with(FakeDevice(stats))
    pool = {"pool": stats["pool_bytes"]} if "pool_bytes" in stats else {}
    assert counters.read_devices() == [Reading(GPU, expected, pool)]


@pytest.mark.parametrize("stats", [None, {}, {"bytes_limit": 1 << 34}, {"bytes_in_use": None}])
def test_a_device_that_does_not_count_its_bytes_in_use_has_those_of_live_arrays(
    stats: dict[str, Any] | None, job_with: Callable[[FakeDevice], None]
) -> None:
    job_with(FakeDevice(stats))
    [found] = counters.read_devices()
    assert found == Reading(WatchedDevice("cuda:0", CounterSource.LIVE_ARRAYS), (0, -1, -1, -1, -1), arrays=0)


@pytest.mark.parametrize("first", ["jax", "torch"])
def test_a_gpu_that_jax_and_pytorch_share_has_a_curve_for_each(
    first: str, tmp_path: Path, devices: list[Reading]
) -> None:
    of_jax, of_torch = reading(1 * MIB), reading(2 * MIB, device=WatchedDevice("cuda:0", CounterSource.TORCH))
    recording = SampleRecorder(str(tmp_path), SECOND, 0.9, WatchClock())
    devices[:] = [of_jax if first == "jax" else of_torch]
    recording.sample((-1, -1))
    devices[:] = [of_jax, of_torch]
    recording.sample((-1, -1))
    recording.close()
    [path] = tmp_path.rglob("*.watch")
    found = {each.memory: usage(each).live.tolist() for each in read(path.read_bytes())}
    assert found == (
        {"cuda:0": [MIB, MIB], "cuda:0 (PyTorch)": [2 * MIB]}
        if first == "jax"
        else {"cuda:0": [2 * MIB, 2 * MIB], "cuda:0 (JAX)": [MIB]}
    )


def test_a_logdir_that_is_deleted_gets_the_whole_curve_again(tmp_path: Path, devices: list[Reading]) -> None:
    recording = SampleRecorder(str(tmp_path / "logs"), SECOND, 0.9, WatchClock())
    for second in range(4):
        if second == 2:
            shutil.rmtree(tmp_path / "logs")
        devices[:] = [reading(second * MIB)]
        recording.sample((-1, -1))
    recording.close()
    [path] = (tmp_path / "logs").rglob("*.watch")
    [found] = read(path.read_bytes())
    assert (usage(found).live // MIB).tolist() == [0, 1, 2, 3]


def test_a_clock_that_is_set_back_does_not_turn_the_curve_around(
    tmp_path: Path, devices: list[Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch(str(tmp_path), every=0.01)
    watched.start()
    monkeypatch.setattr(time, "time_ns", lambda: START_NS - 3600 * SECOND)
    for number in range(10):
        watched.step(number)
        time.sleep(0.05)
    watched.stop()
    [path] = tmp_path.rglob("*.watch")
    [found] = read(path.read_bytes())
    assert found.clock is not None and found.clock[-1] >= 0.5 * SECOND
    assert found.spans is not None and found.spans.name[len(found.spans) - 1] == "step 9"


def test_where_nothing_can_be_watched_the_log_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "read_devices", list)
    monkeypatch.setattr("tb_memplugin.capture.guard._warned", set())
    recording = SampleRecorder(str(tmp_path), SECOND, 0.9, WatchClock())
    recording.sample((1, 0))
    assert caplog.records == [], "devices may start later"
    for event in (RecordEvent.FINISHED, RecordEvent.FINISHED):
        recording.sample((2, 0), event)
    [line] = caplog.messages
    assert "no device is watched so far" in line and "PyTorch, whose CPU counts nothing" in line
    assert not list(tmp_path.iterdir())


def test_the_number_of_a_step_is_never_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    class Array:
        def __int__(self) -> int:
            raise AssertionError("the job waits for the device")

    watched = watch("/nowhere")
    wrong: list[Any] = [Array(), None, float("nan")]
    for number in wrong:
        watched.step(number)
        assert watched.current_step == (-1, -1)
    assert "a number is of type Array: count the steps in Python" in caplog.text
    for right in (np.int32(8), 8.0, 2**70):
        watched.step(right)  # type: ignore[arg-type]
        assert watched.current_step[0] == min(right, 2**62)


def test_a_watch_can_be_started_and_stopped_in_any_thread_and_twice(tmp_path: Path, devices: list[Reading]) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    watched = watch(str(tmp_path), every=0.01)
    watched.stop()
    thread = threading.Thread(target=watched.start)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGUSR1) is before, "only the main thread may set handlers"
    assert watched.start() is watched
    watched.stop()
    with watched:
        assert signal.getsignal(signal.SIGUSR1) is not before
    watched.stop()
    assert signal.getsignal(signal.SIGUSR1) is before
    files = sorted(tmp_path.rglob("*.watch"))
    assert len(files) == 2 and all(not found.is_live for file in files for found in read(file.read_bytes()))


def test_a_handler_that_the_job_sets_later_stays(tmp_path: Path, devices: list[Reading]) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    later = lambda *_: None  # noqa: E731
    try:
        with watch(str(tmp_path)):
            signal.signal(signal.SIGUSR1, later)
        assert signal.getsignal(signal.SIGUSR1) is later
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        with watch(str(tmp_path)):
            assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN, "the job ignores it"
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("wrong", [{"every": 0}, {"every": -1}, {"every": float("nan")}, {"at": 0}, {"at": 1.5}])
def test_options_that_cannot_be_meant_are_errors(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        watch("/tmp/x", **wrong)  # type: ignore[arg-type]


def test_arrays_count_on_each_device_that_has_a_shard() -> None:
    jax = pytest.importorskip("jax")
    kept = jax.device_put(np.zeros((1 << 16,), np.float32))
    [before] = counters.read_devices()
    more = jax.device_put(np.zeros((1 << 18,), np.float32))
    [after] = counters.read_devices()
    assert before.device.source is CounterSource.LIVE_ARRAYS
    assert after.counters[0] - before.counters[0] == more.nbytes and before.counters[0] >= kept.nbytes


def test_pytorchs_counters_and_its_snapshots_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = {
        "allocated_bytes.all.current": 300 * MIB,
        "allocated_bytes.all.peak": 400 * MIB,
        "reserved_bytes.all.current": 500 * MIB,
        "reserved_bytes.all.peak": 500 * MIB,
    }
    fake = FakeTorch()
    torch: Any = fake.module()
    torch.cuda.__dict__.update(
        is_initialized=lambda: True,
        device_count=lambda: 2,
        memory_stats=lambda number: stats if number == 0 else {"reserved_bytes.all.peak": 0},
        get_device_properties=lambda number: SimpleNamespace(total_memory=1000 * MIB),
    )
    fake.alloc(3 * MIB)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(counters, "started_jax", lambda: None)
    monkeypatch.setattr(snapshots, "started_jax", lambda: None)
    error = RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    with pytest.raises(RuntimeError) as raised, watch(str(tmp_path), every=0.01):
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.3)
        raise error
    assert raised.value is error and any(".pickle" in note for note in error.__notes__)
    found = listing_of_path(str(tmp_path)).recordings
    [curve] = [recording for recording in found if recording.kind is RecordingKind.WATCH]
    taken = [recording for recording in found if recording.kind is RecordingKind.TORCH_SNAPSHOT]
    assert curve.memory == "cuda:0" and curve.capacity == 1000 * MIB and curve.reported_peak == 400 * MIB
    assert curve.reserved is not None and curve.reserved.max() == 500 * MIB
    assert usage(curve).live.max() == 300 * MIB, "reserved memory is free for tensors"
    assert [snapshot.memory for snapshot in taken] == ["cuda:0"] * 2
    assert {recording.run for recording in found} == {curve.run}
    assert list(tmp_path.rglob("*.oom.txt"))


def test_a_remote_logdir_has_the_whole_curve_at_the_end(devices: list[Reading]) -> None:
    with watch("memory://watched/run", every=0.01) as watched:
        for number in range(5):
            watched.step(number)
            time.sleep(0.05)
    [found] = listing_of_path("memory://watched/run").recordings
    assert found.kind is RecordingKind.WATCH and not found.is_live
    assert found.spans is not None and found.spans.name[len(found.spans) - 1] == "step 4"


def test_a_leak_of_small_arrays_that_are_read_rarely_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """7,333 arrays of 64 bytes leak in 200 s. Reading takes 1.5 microseconds for each array, in 0.08 % of the time."""
    now, found = 0.0, []
    triggers = Triggers(0.9)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    cpu = WatchedDevice("cpu:0", CounterSource.LIVE_ARRAYS)
    while now < 240:
        arrays = 200 + round(7333 * now / 200)
        if reason := triggers.reason(
            [Reading(cpu, (100 * MIB + 64 * arrays, -1, -1, -1, -1), arrays=arrays)], int(now * 10)
        ):
            triggers.saved()
            found.append((now, reason))
        now += max(1.0, 1.5e-6 * arrays / 0.0008)
    assert [reason for _, reason in found] == ["growth"] and found[0][0] < 150
    steady = Triggers(0.9)
    for second in range(0, 3600, 10):
        now = float(second)
        assert not steady.reason([Reading(cpu, (MIB, -1, -1, -1, -1), arrays=5000 + second % 70)], second)
