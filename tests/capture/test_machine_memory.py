"""The memory of the whole machine: host and cgroups from /proc, GPUs from NVML, and phases of steps."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.watch_files import MIB

from tb_memplugin.capture.watching import device_memory, host_memory, recorder, watch, watcher
from tb_memplugin.capture.watching.counters import MAX_PHASES, Phase, PhaseLevels, Reading
from tb_memplugin.capture.watching.device_memory import DeviceMemory
from tb_memplugin.capture.watching.host_memory import HostMemory
from tb_memplugin.capture.watching.paced import Paced
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.watch_layout import CounterSource, DeviceColumn, MemoryPart, WatchedDevice

GPU = WatchedDevice("cuda:0", CounterSource.MEMORY_STATS)
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
KIB = 1024


def on_gpu(in_use: int, peak: int, number: int = 0) -> Reading:
    return Reading(GPU, (in_use * MIB, peak * MIB, 100 * MIB, -1, -1), {"pool": 60 * MIB}, number)


# Host


@linux
def test_the_memory_of_this_process_its_children_and_dev_shm_is_measured() -> None:
    before = HostMemory().read()[0].parts
    kept = np.ones(64 * MIB, np.uint8)
    script = "import sys, time; kept = bytearray(b'x' * (96 << 20)); print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == b"ready\n"
            [after] = HostMemory().read()
        finally:
            child.kill()
    grown = {name: (after.parts[name] - before[name]) // MIB for name in before}
    assert 60 <= grown["private"] <= 80 and grown["rss"] >= 60
    assert 95 <= after.parts["children"] // MIB - before["children"] // MIB <= 120
    assert kept.nbytes and after.parts["total"] >= after.counters[DeviceColumn.LIMIT] > after.parts["used"] > 0
    own = (MemoryPart.PRIVATE, MemoryPart.CHILDREN, MemoryPart.SHM)
    assert after.counters[DeviceColumn.IN_USE] == sum(after.parts[part] for part in own)


@linux
def test_files_in_dev_shm_count_as_memory() -> None:
    shared = Path("/dev/shm") / f"tb_memplugin_test_{os.getpid()}"

    def grown() -> int:
        before = HostMemory().read()[0].parts["shm"]
        try:
            shared.write_bytes(b"x" * (8 * MIB))
            return HostMemory().read()[0].parts["shm"] - before
        finally:
            shared.unlink(missing_ok=True)

    assert any(grown() == 8 * MIB for _ in range(100))  # browsers that run beside use it, too


@linux
def test_the_real_cgroups_of_this_process_are_found() -> None:
    """Its folders exist for each hierarchy with a memory controller that is mounted here."""
    memory = HostMemory()
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for folder, (used, limit, _) in memory._find_cgroups():
        if limit == "memory.limit_in_bytes":
            assert (Path(folder) / limit).is_file() and int((Path(folder) / used).read_text()) > 0
            [path] = [path for _, controllers, path in lines if "memory" in controllers.split(",")]
            assert Path(folder).name in (*path.split("/"), "memory")


STATUS = "VmRSS:\t 40960 kB\nRssAnon:\t 20480 kB\nRssFile:\t 10240 kB\nRssShmem:\t 10240 kB\n"
LIMIT = 1 << 30


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., HostMemory]:
    """Return a function that makes a tree of files, by path, beside a process of 40 MiB on a host of 8 GiB."""

    def make(files: dict[str, object]) -> HostMemory:
        usual = {"proc/self/status": STATUS, "proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"}
        for name, content in {**usual, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(content))
        return HostMemory(str(tmp_path))

    return make


def cgroup2(levels: dict[str, tuple[object, int, int]], path: str, root: str = "/") -> dict[str, object]:
    """Return the files of version 2. `levels`: limit, bytes in use and inactive cache, by folder below the mount."""
    files: dict[str, object] = {
        "proc/self/cgroup": f"0::{path}\n",
        "proc/self/mountinfo": f"31 23 0:28 {root} /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n",
    }
    for folder, (limit, used, cache) in levels.items():
        place = os.path.normpath(f"sys/fs/cgroup/{folder}")
        files |= {f"{place}/memory.max": f"{limit}\n", f"{place}/memory.current": f"{used}\n"}
        files[f"{place}/memory.stat"] = f"anon 1\nactive_file 3\ninactive_file {cache}\n"
    return files


def limits(memory: HostMemory) -> tuple[int, int]:
    [found] = memory.read()
    return found.parts["used"] // MIB, found.counters[DeviceColumn.LIMIT] // MIB


def test_of_nested_cgroups_of_version_2_the_nearest_limit_counts(tree: Callable[..., HostMemory]) -> None:
    levels = {"": ("max", 0, 0), "pod": (2 * LIMIT, 1900 * MIB, 0), "pod/job": (LIMIT, 700 * MIB, 200 * MIB)}
    assert limits(tree(cgroup2(levels, "/pod/job"))) == (1900, 2048), "148 MiB are left in the pod"
    levels["pod"] = (2 * LIMIT, 800 * MIB, 0)
    assert limits(tree(cgroup2(levels, "/pod/job"))) == (500, 1024), "reclaimable cache is no use"


def test_without_a_limit_the_host_is_the_limit(tree: Callable[..., HostMemory]) -> None:
    memory = tree(cgroup2({"": ("max", 5, 0), "a": ("max", 5, 0)}, "/a"))
    assert limits(memory) == (4096, 8192)
    [found] = memory.read()
    expected = {"rss": 40, "private": 20, "children": 0, "total": 8192}
    assert {name: found.parts[name] // MIB for name in expected} == expected


@pytest.mark.parametrize(
    ("path", "root", "folder"),
    [
        ("/docker/abc", "/docker/abc", ""),  # a container that sees its cgroup as the root
        ("/docker/abc/inner", "/docker/abc", "inner"),
        ("/../../other", "/", ""),  # of a process that is outside of the namespace
        ("/docker/abc", "/", "docker/abc"),
    ],
)
def test_a_container_finds_its_cgroup(path: str, root: str, folder: str, tree: Callable[..., HostMemory]) -> None:
    assert limits(tree(cgroup2({folder: (LIMIT, 300 * MIB, 0)}, path, root))) == (300, 1024)


def test_cgroups_of_version_1_beside_a_version_2_without_memory(tree: Callable[..., HostMemory]) -> None:
    mounts = (
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    )
    files = {"proc/self/cgroup": "4:cpu:/x\n3:memory:/job/step\n0::/\n", "proc/self/mountinfo": mounts}
    for folder, limit in (("job/step", 2**63 - 4096), ("job", LIMIT), ("", 2**63 - 4096)):
        place = os.path.normpath(f"sys/fs/cgroup/memory/{folder}")
        files |= {f"{place}/memory.limit_in_bytes": str(limit), f"{place}/memory.usage_in_bytes": str(900 * MIB)}
        files[f"{place}/memory.stat"] = f"inactive_file 5\ntotal_inactive_file {100 * MIB}\n"
    assert limits(tree(files)) == (800, 1024)


@pytest.mark.parametrize("missing", ["proc/self/status", "proc/meminfo"])
def test_elsewhere_than_on_linux_there_are_no_figures(missing: str, tree: Callable[..., HostMemory]) -> None:
    assert tree({missing: ""}).read() == []
    assert HostMemory("/nowhere").read() == []


def test_children_are_found_through_every_thread_and_one_that_ends_is_none(tree: Callable[..., HostMemory]) -> None:
    pid, rss = os.getpid(), "RssAnon:\t {} kB\n"
    memory = tree(
        {
            f"proc/{pid}/task/{pid}/children": "11 12 ",
            f"proc/{pid}/task/99/children": "13",
            "proc/12/task/12/children": "14",
            "proc/12/status": rss.format(2 * KIB),
            "proc/13/status": rss.format(3 * KIB),
            "proc/14/status": rss.format(5 * KIB),
        }
    )
    assert memory.read()[0].parts["children"] == 10 * MIB


def test_an_expensive_figure_is_read_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now, spent, calls = [0.0], [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "thread_time", lambda: spent[0])

    def read() -> int:
        spent[0] += 0.002
        calls.append(now[0])
        return len(calls)

    figure = Paced(read)
    values = []
    for second in range(60):
        now[0] = float(second)
        values.append(figure())
    assert calls == [0, 20, 40], "0.002 s in 20 s is 0.01 %"
    assert values[19] == 1 and values[20] == 2


@linux
def test_a_sample_of_the_host_reads_few_files_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of /proc, one of each child process, three of each cgroup; what takes long was searched for before."""
    memory = HostMemory()
    memory._reading()
    children, cgroups = memory._children(), memory._cgroups()
    opened, listed, open_file = list[str](), list[str](), os.open

    def counted(path: str, flags: int) -> int:
        opened.append(path)
        return open_file(path, flags)

    monkeypatch.setattr(os, "open", counted)
    monkeypatch.setattr(os, "listdir", listed.append)
    memory._reading()
    monkeypatch.undo()
    assert opened[:2] == ["/proc/self/status", "/proc/meminfo"] and not listed
    assert len(opened) == len(set(opened)) <= 2 + len(children) + 3 * len(cgroups)


# Devices


class FakeNvml:
    """NVML with one GPU of 100 MiB. `processes`: bytes by process id; None where the driver does not say."""

    def __init__(self, processes: dict[int, int | None], names: dict[int, object] | None = None) -> None:
        self.processes, self.names = processes, names or {}
        self.asked: list[object] = []

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        self.asked.append(number)
        return number

    def nvmlDeviceGetHandleByUUID(self, name: str) -> str:
        self.asked.append(name)
        return name

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Any:
        return SimpleNamespace(used=95 * MIB, total=100 * MIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[Any]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.processes.items()]

    def nvmlSystemGetProcessName(self, pid: int) -> object:
        if pid not in self.names:
            raise PermissionError("no permission")
        return self.names[pid]


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeNvml], FakeNvml]:
    def use(fake: FakeNvml) -> FakeNvml:
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        return fake

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return use


def test_a_gpu_has_the_memory_of_this_process_and_of_others_by_name(nvml: Callable[[FakeNvml], FakeNvml]) -> None:
    nvml(FakeNvml({os.getpid(): 75 * MIB, 7: 15 * MIB, 8: 2 * MIB}, {7: b"/usr/bin/python3 serve.py"}))
    [found] = DeviceMemory().add_to([on_gpu(50, 50)])
    expected = {"pool": 60, "used": 95, "total": 100, "own": 75, "process python3 (7)": 15, "process process 8": 2}
    assert {name: size // MIB for name, size in found.parts.items()} == expected


def test_processes_that_come_and_go_do_not_widen_the_file_without_end(nvml: Callable[[FakeNvml], FakeNvml]) -> None:
    memory, fake, found = DeviceMemory(), nvml(FakeNvml({})), set[str]()
    for pid in range(100, 200):
        fake.processes = {os.getpid(): MIB, 7: 3 * MIB, pid: 2 * MIB}
        memory._devices.get(0, Paced(dict))._next = 0.0
        [reading] = memory.add_to([on_gpu(50, 50)])
        found |= {name for name in reading.parts if name.startswith("process ")}
    assert len(found) == 8 and "process process 7" in found


@pytest.mark.parametrize(
    ("processes", "own"),
    [({4711: 75 * MIB}, 75), ({4711: 75 * MIB, 4712: 5 * MIB}, None), ({4711: None}, None), ({}, None)],
)
def test_in_a_container_the_only_process_of_a_gpu_is_this_one(
    processes: dict[int, int | None], own: int | None, nvml: Callable[[FakeNvml], FakeNvml]
) -> None:
    nvml(FakeNvml(processes))
    [found] = DeviceMemory().add_to([on_gpu(50, 50)])
    assert found.parts.get("own") == (own * MIB if own else None) and found.parts["used"] == 95 * MIB
    assert not [name for name in found.parts if name.startswith("process ")]


@pytest.mark.parametrize(("visible", "asked"), [("", 1), ("3,5", 5), ("GPU-a,GPU-b", "GPU-b")])
def test_the_gpu_is_the_one_that_cuda_shows(
    visible: str, asked: object, nvml: Callable[[FakeNvml], FakeNvml], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    fake = nvml(FakeNvml({}))
    DeviceMemory().add_to([on_gpu(50, 50, 1)])
    assert fake.asked == [asked]


def test_without_nvml_and_where_it_fails_the_counters_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    without = [on_gpu(50, 50)]
    assert DeviceMemory().add_to(without) == without
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(nvmlInit=lambda: None))
    memory = DeviceMemory()
    for _ in range(2):
        assert memory.add_to(without) == without


# Phases


def test_the_peak_between_two_samples_is_of_the_phase_that_ran_all_the_time() -> None:
    levels, first, second = PhaseLevels(), Phase("rollout", object()), Phase("train", object())
    samples = [(10, 10, first), (12, 40, first), (15, 60, second), (16, 60, second), (17, 70, None), (18, 80, second)]
    found = [levels.add_to([on_gpu(used, top)], phase)[0].parts for used, top, phase in samples]
    assert [part.get("phase rollout", 0) // MIB for part in found] == [10, 40, 0, 0, 0, 0]
    assert [part.get("phase train", 0) // MIB for part in found] == [0, 0, 15, 16, 0, 18]


def test_phases_are_bounded_and_only_texts() -> None:
    levels, wrong = PhaseLevels(), [3, None, ["x"]]
    for name in [*wrong, *(f"phase {number}" for number in range(100))]:
        levels.add_to([on_gpu(1, 1)], Phase(name, object()))  # type: ignore[arg-type]
    assert len(levels._names) == MAX_PHASES


def test_a_job_records_host_devices_and_phases(
    tmp_path: Path, nvml: Callable[[FakeNvml], FakeNvml], monkeypatch: pytest.MonkeyPatch
) -> None:
    level = [20]
    monkeypatch.setattr(recorder, "read_devices", lambda: [on_gpu(level[0], -1)])
    monkeypatch.setattr(watcher, "MAX_SHARE", 1.0)  # samples on a busy machine are as close as elsewhere
    nvml(FakeNvml({os.getpid(): 75 * MIB}))
    with watch(str(tmp_path), every=0.01) as watched:
        for number in range(6):
            watched.step(number)
            with watched.phase("rollout"):
                time.sleep(0.2)
                with pytest.raises(KeyError), watched.phase("decode"):
                    level[0] = 55
                    time.sleep(0.2)
                    level[0] = 20
                    raise KeyError
            assert watched._phase is None
    found = {one.memory: one for one in listing_of_path(str(tmp_path)).recordings}
    device = found["cuda:0"]
    assert device.phases is not None
    peaks = dict(zip(device.phases.name, (device.phases.bytes // MIB).tolist(), strict=True))
    assert peaks == {"rollout": 20, "decode": 55}
    assert names(device) == ["Live", "Cache", "Outside of the allocator", "Driver and other processes", "Free"]
    if sys.platform == "linux":
        assert {"Private", "Free"} <= set(names(found["host"])) and found["host"].length > 1


def names(recording: Recording) -> list[str]:
    return list(recording.ledger.name) if recording.ledger is not None else []


def test_a_failure_of_the_host_does_not_end_the_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "read_devices", lambda: [on_gpu(5, 5)])

    def fail(memory: object) -> None:
        raise ValueError("no number")

    monkeypatch.setattr(HostMemory, "read", fail)
    monkeypatch.setattr(device_memory, "_read", fail)
    with watch(str(tmp_path), every=0.01):
        time.sleep(0.2)
    [device] = listing_of_path(str(tmp_path)).recordings
    assert device.memory == "cuda:0" and "the host's memory could not be read" in caplog.text


def test_a_job_without_devices_has_the_memory_of_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "read_devices", list)
    whole = Reading(host_memory.HOST, (5, -1, 100, -1, -1), {"private": 5})
    monkeypatch.setattr(HostMemory, "read", lambda memory: [whole])
    with watch(str(tmp_path), every=0.01):
        time.sleep(0.1)
        assert not list(tmp_path.iterdir()), "the devices may start later, and name the run"
        monkeypatch.setattr(recorder, "PATIENCE_NS", 0)
        monkeypatch.setitem(sys.modules, "jax", None)
        time.sleep(0.2)
        assert not list(tmp_path.iterdir()), "however much later"
        monkeypatch.delitem(sys.modules, "jax")
        for _ in range(500):
            if list(tmp_path.iterdir()):
                break
            time.sleep(0.02)
        assert list(tmp_path.iterdir()), "without JAX, nothing names it"
    [found] = listing_of_path(str(tmp_path)).recordings
    assert found.memory == "host" and found.length > 1
