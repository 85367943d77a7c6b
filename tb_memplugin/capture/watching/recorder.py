"""The steps that the watching thread takes with each sample: record, write and show it, and decide on a snapshot.

Outputs show samples in other programs. Each needs a package that may be missing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from tb_memplugin.capture.guard import inform, quietly, warn
from tb_memplugin.capture.new_files import LogDir, is_remote, join, process_name
from tb_memplugin.capture.profile_run import run_of
from tb_memplugin.capture.watching.counters import DeviceNames, Phase, PhaseLevels, Reading, read_devices, started_jax
from tb_memplugin.capture.watching.curve import Curve, CurveFile
from tb_memplugin.capture.watching.device_memory import DeviceMemory
from tb_memplugin.capture.watching.gauges import Gauge, gauges_of, growth_of
from tb_memplugin.capture.watching.host_memory import HostMemory
from tb_memplugin.capture.watching.paced import Paced
from tb_memplugin.capture.watching.snapshots import Triggers, save_snapshot
from tb_memplugin.readers.watch_layout import UNKNOWN, NamedColumn, RecordEvent

# On Linux, a clock that goes on while the machine is suspended, unlike the monotonic one.
_elapsed_ns = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic_ns
)


class WatchClock:
    """Nanoseconds since 1970, counted from the machine's time when the watch was made."""

    def __init__(self) -> None:
        self._start_ns = max(time.time_ns(), 0) - _elapsed_ns()

    def now_ns(self) -> int:
        return self._start_ns + _elapsed_ns()


NOT_SHOWN = "memory is not shown by another program, and training continues"
NO_METRICS = "memory is not served as metrics, and training continues"
NO_SCALARS = "memory is not written as scalars, and training continues"


class Output(Protocol):
    """Something that shows samples."""

    def show(self, readings: list[Reading], step: int, gauges: Sequence[Gauge]) -> None: ...
    def close(self) -> None: ...


def open_outputs(port: int | None, host: str, tensorboard: bool, folder: Callable[[], str]) -> list[Output]:
    """Return the outputs that can be opened; the others are lines of the log.

    `port`: for Prometheus, at the address `host`. `tensorboard`: whether to write scalars. `folder`: of the run, when
    it exists.
    """
    found: list[Output] = []
    if port is not None:
        with quietly(NO_METRICS):
            try:
                from tb_memplugin.capture.watching.metrics import PrometheusMetrics

                metrics = PrometheusMetrics(port, host)
                found.append(metrics)
                inform(f"memory is served at http://{host}:{metrics.port}/metrics")
            except ImportError:
                warn(NO_METRICS, "the package prometheus-client is missing: pip install 'tb-memplugin[watch]'")
    if tensorboard:
        with quietly(NO_SCALARS):
            try:
                from tb_memplugin.capture.watching.scalars import TensorBoardScalars

                found.append(TensorBoardScalars(lambda: _local(folder())))
            except ImportError:
                warn(NO_SCALARS, "the package tensorboard is missing: pip install tensorboard")
    return found


def _local(folder: str) -> str:
    if is_remote(folder):
        raise OSError(f"scalars can be written to local folders only, not to {folder}")
    return folder


NOT_READ = "the host's memory could not be read, and training continues"
NOT_WRITTEN = "the memory curve could not be written, and training continues"
NOTHING = "no device is watched so far, and training continues"
GROWTH_SECONDS = 30.0  # at least, between two measurements of growth
PATIENCE_NS = 120 * 10**9
SNAPSHOT_SECONDS = 60.0  # at least, between two snapshots


class SampleRecorder:
    """Records samples of all devices and of the host, `interval_ns` apart. Methods are called by one thread.

    They never raise.
    """

    def __init__(self, logdir: LogDir, interval_ns: int, at: float, clock: WatchClock) -> None:
        self._logdir = logdir
        self._clock = clock
        self._curve = Curve(clock.now_ns(), interval_ns)
        self._file = CurveFile(lambda: join(self.folder(), f"{process_name()}.watch"))
        self._names, self._gpus, self._host = DeviceNames(), DeviceMemory(), HostMemory()
        self.phase: Callable[[], Phase | None] = lambda: None
        self._levels = PhaseLevels()
        self._began_ns = _elapsed_ns()
        self._triggers = Triggers(at)
        self.outputs: list[Output] = []
        self.gauges: Sequence[Gauge] = ()  # of the latest sample
        self.has_readers = False  # of `gauges`
        self._growth: list[Gauge] = []
        self._read_growth = Paced(lambda: growth_of(self._curve.content()), GROWTH_SECONDS)
        self._saved = float("-inf")  # time of the last snapshot
        self.asked = False  # for a snapshot

    def folder(self) -> str:
        """Return the folder of this process's run, which is created with the first call."""
        return run_of(self._logdir, started_jax()).folder

    def sample(self, step: tuple[int, int], event: RecordEvent = RecordEvent.SAMPLE) -> str:
        """Record a sample, and return the reason for a snapshot now; empty for none. `step`: number and begin in ns."""
        phase = self.phase()
        devices = self._gpus.add_to(self._names.distinct(read_devices()))
        readings = list(devices)
        with quietly(NOT_READ):
            readings += self._host.read()
        readings = self._levels.add_to(readings, phase if phase == self.phase() else None)
        # The name of the run depends on JAX, so it waits for the job to start its devices.
        waits = not devices and not self._file.path and self._waits(event)
        if not readings:
            return ""
        with quietly(NOT_WRITTEN):
            head = self._clock.now_ns(), event, *step
            named = {NamedColumn(one.device.name, name): size for one in readings for name, size in one.parts.items()}
            self._curve.add(head, {reading.device: reading.counters for reading in readings}, named)
            if not waits:
                self._file.write(self._curve, last=event is RecordEvent.FINISHED)
        if self.outputs or self.has_readers:
            self.gauges = [*gauges_of(readings, step[0]), *self._growth]
        for output in self.outputs:
            with quietly(NOT_SHOWN):
                output.show(readings, step[0], self.gauges)
        reason = self._triggers.reason(devices, step[0])
        if time.monotonic() < self._saved + SNAPSHOT_SECONDS:
            return ""
        return "signal" if self.asked else reason

    def measure_growth(self) -> None:
        """Measure growth for the gauges of later samples, in a share of the time of its own."""
        if (self.outputs or self.has_readers) and self._curve.count:
            with quietly(NOT_SHOWN):
                self._growth = self._read_growth()

    def _waits(self, event: RecordEvent) -> bool:
        """Return whether JAX may still start devices. Say once that none is watched, after a time and at the end."""
        is_last = event is RecordEvent.FINISHED
        if not is_last and _elapsed_ns() - self._began_ns <= PATIENCE_NS:
            return True
        warn(NOTHING, "this process uses no device of JAX, and no CUDA device of PyTorch, whose CPU counts nothing")
        return "jax" in sys.modules and not is_last

    def snapshot(self, reason: str, step: int) -> None:
        """Save a snapshot."""
        self._saved, self.asked = time.monotonic(), False
        self._triggers.saved()
        inform(f"saving a snapshot: {reason}")
        save_snapshot(self._logdir, None if step == UNKNOWN else step, reason)

    def close(self) -> None:
        """Close the file and the outputs."""
        closing: list[Any] = [self._file, *self.outputs]
        for each in closing:
            with quietly("watching could not be ended in order"):
                each.close()
