"""The plane /host:CPU of a host: the main thread, threads of the runtime, and those of each device with its events."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.pods.allocator import APART, CAPACITY, Event, Loop
from benchmarks.pods.tasks import (
    CALLS,
    END,
    MAX_ROWS,
    ROWS_STEP,
    SCALAR_SHAPE,
    STEP,
    STEPS,
    WEIGHT_SHAPES,
    WIDTH,
    Call,
    Extra,
    Task,
    step_start,
)
from tb_memplugin.protos.xplane_pb2 import XEvent, XLine, XPlane, XSpace

REAL = Path(__file__).parents[2] / "demo_logdir/train_step/plugins/profile/cpu/localhost.xplane.pb"
PLANE = b"/host:CPU"
TIMESTAMP_NS = 4516  # of all lines

MAIN, WORKERS, CALLBACKS, THREADS = 100, 200, 300, 400  # ids of lines; of the last three, a hundred devices each
BATCH_SHAPES = 600  # the first id of the names of batches' shapes; xprof-rs refuses ids of some thousands
RUNTIME = 7  # the type of the links between the main thread and the devices' threads

SCHEDULED = "Scheduled TfrtTpuLoadedExecutable::Execute"
ALLOCATE = "DeferredTpuAllocator::Allocate"
TRANSFER = "TfrtTpuClient::BufferFromHostBuffer::TfrtTpuBuffer"
EXECUTE = "TfrtTpuLoadedExecutable::Execute"
DEVICE_PUT = "DevicePutWithSharding"
CALLBACK = "CompleteCallbacks"
SCRIPT, THREAD, STEP_MARK = "$train.py:112 main", "$threading.py:1012 run", "train"
EVENTS = ("MemoryAllocation", "MemoryDeallocation")
FIGURES = (
    "index_on_host", "bytes_reserved", "bytes_allocated", "bytes_available", "fragmentation", "peak_bytes_in_use",
    "requested_bytes", "allocation_bytes", "addr", "tf_op", "id", "data_type", "shape", "dummy",
    "step_num", "_r", "_pt", "_p", "_ct", "_c",
)  # fmt: skip


def frame(call: Call) -> str:
    return f"${call.source_line} {call.function}"


class HostPlane:
    """The parts of the plane that all hosts have in common, and the threads of any device."""

    def __init__(self, extras: Iterable[Extra] = (), *, real_threads: bool = True) -> None:
        """`extras`: all that devices may have. `real_threads`: add the threads of a real profile, without its calls."""
        self._plane = real_threads_plane() if real_threads else XPlane()
        self._plane.name, self._plane.id = PLANE, 0
        self._event_ids = {m.name.decode(): key for key, m in self._plane.event_metadata.items()}
        self._stat_ids = {m.name.decode(): key for key, m in self._plane.stat_metadata.items()}
        names = [SCHEDULED, ALLOCATE, TRANSFER, EXECUTE, CALLBACK, SCRIPT, THREAD, STEP_MARK, *EVENTS]
        calls = [*CALLS, *(extra.call for extra in extras)]
        names += [name for call in calls for name in (frame(call), _inner(call))]
        number_names(names, self._event_ids, self._plane.event_metadata)
        number_names((*FIGURES, SCALAR_SHAPE, *WEIGHT_SHAPES), self._stat_ids, self._plane.stat_metadata)

    def common(self, tasks: list[Task]) -> bytes:
        """Return the plane without the devices' threads."""
        plane = XPlane()
        plane.CopyFrom(self._plane)
        plane.lines.append(self._main_thread(tasks))
        return plane.SerializeToString(deterministic=True)

    def device(self, device: int, loop: Loop) -> bytes:
        """Return what the plane has of a device, its threads and the shapes of its arrays, to be put after the rest."""
        plane = XPlane()
        threads = ((WORKERS, b"py_xla_execute"), (CALLBACKS, b"switchto-default"), (THREADS, b"python"))
        worker, callbacks, other = (
            plane.lines.add(id=first + device, name=b"%s/%d" % (name, device), timestamp_ns=TIMESTAMP_NS)
            for first, name in threads
        )
        times: dict[int, list[int]] = {}
        for event in loop.events:
            own = worker if event.task < loop.first_extra else other
            self._log(callbacks if event.frees else own, device, event)
            if not event.frees:
                times.setdefault(event.task, []).append(event.time)
        for number, task in enumerate(loop.tasks):
            extra = number >= loop.first_extra
            self._around_task(other if extra else worker, number, task, times[number], extra=extra)
        for event in loop.events:
            if event.shape and event.shape not in self._stat_ids:
                number = self._shape_id(event)
                plane.stat_metadata[number].id, plane.stat_metadata[number].name = number, event.shape.encode()
        return plane.SerializeToString(deterministic=True)

    def _around_task(self, line: XLine, number: int, task: Task, times: list[int], *, extra: bool) -> None:
        """Add the calls that enclose a task's allocations."""
        start, end = times[0], times[-1]
        if not extra:
            consumer = self._call(line, SCHEDULED if task.call.jitted else TRANSFER, start - 4, end + 4)
            self._stat(consumer, "_ct", RUNTIME)
            self._stat(consumer, "_c", number + 1)
        else:
            self._call(line, THREAD, start - 5, end + 5)
            self._call(line, frame(task.call), start - 4, end + 4)
            self._call(line, _inner(task.call), start - 3, end + 3)
        self._call(line, ALLOCATE, start - 2, end + 2)

    def _shape_id(self, event: Event) -> int:
        """Return the number of a shape's name. Batches have one for each size, the same on all devices."""
        return self._stat_ids.get(event.shape) or BATCH_SHAPES + (MAX_ROWS - event.size // (WIDTH * 2)) // ROWS_STEP

    def _main_thread(self, tasks: list[Task]) -> XLine:
        line = XLine(id=MAIN, name=b"python", timestamp_ns=TIMESTAMP_NS)
        self._call(line, SCRIPT, 0, END)
        for step in range(STEPS):
            mark = self._call(line, STEP_MARK, step_start(step), step_start(step + 1) - APART)
            self._stat(mark, "step_num", step)
            self._stat(mark, "_r", 1)
        for number, task in enumerate(tasks):
            end = min(task.end, task.start + STEP // 50)
            self._call(line, frame(task.call), task.start - 3, end)
            self._call(line, _inner(task.call), task.start - 2, end - 1)
            if task.call.jitted:
                producer = self._call(line, EXECUTE, task.start, end - 2)
            else:
                producer = line.events[-1]
            self._stat(producer, "_pt", RUNTIME)
            self._stat(producer, "_p", number + 1)
        return line

    def _call(self, line: XLine, name: str, start: int, end: int) -> XEvent:
        return line.events.add(metadata_id=self._event_ids[name], offset_ps=start, duration_ps=end - start)

    def _stat(self, event: XEvent, name: str, value: int) -> None:
        event.stats.add(metadata_id=self._stat_ids[name], int64_value=value)

    def _log(self, line: XLine, device: int, event: Event) -> None:
        """Add an event of the allocator as a TPU's runtime logs it: a free has no size."""
        if event.frees:
            self._call(line, CALLBACK, event.time - APART // 4, event.time + APART // 4)
        logged = self._call(line, EVENTS[event.frees], event.time, event.time)
        for name, value in (
            ("index_on_host", device),
            ("bytes_reserved", event.reserved),
            ("bytes_allocated", event.in_use),
            ("bytes_available", CAPACITY - event.in_use - event.reserved),
            ("peak_bytes_in_use", event.peak),
            ("addr", event.address),
        ):
            self._stat(logged, name, value)
        logged.stats.add(metadata_id=self._stat_ids["fragmentation"], double_value=0.0)
        if event.frees:
            return
        for name, value in (
            ("requested_bytes", event.size), ("allocation_bytes", event.size), ("id", 0), ("data_type", 0),
        ):  # fmt: skip
            self._stat(logged, name, value)
        if event.shape:
            logged.stats.add(metadata_id=self._stat_ids["tf_op"], ref_value=self._stat_ids["dummy"])
            logged.stats.add(metadata_id=self._stat_ids["shape"], ref_value=self._shape_id(event))


def _inner(call: Call) -> str:
    """Return the name of what a line calls."""
    return f"PjitFunction({call.jitted})" if call.jitted else DEVICE_PUT


def number_names(names: Iterable[str], ids: dict[str, int], metadata: Any) -> None:
    """Add the names that the plane does not have yet."""
    for name in names:
        if name not in ids:
            ids[name] = max(ids.values(), default=0) + 1
            metadata[ids[name]].id, metadata[ids[name]].name = ids[name], name.encode()


def real_threads_plane() -> XPlane:
    """Return the threads of a real profile's runtime, without the thread that calls it."""
    space = XSpace.FromString(REAL.read_bytes())
    (plane,) = (plane for plane in space.planes if plane.name == PLANE)
    lines = [line for line in plane.lines if line.name != b"python"]
    real = XPlane(event_metadata=plane.event_metadata, stat_metadata=plane.stat_metadata, lines=lines)
    for number, line in enumerate(real.lines, 1):
        line.id, line.timestamp_ns = number, TIMESTAMP_NS
    return real
