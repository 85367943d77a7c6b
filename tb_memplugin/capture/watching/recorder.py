"""The steps that the watching thread takes with each sample: record, write and show it, and decide on a snapshot."""

from __future__ import annotations

import time
from typing import Any

from tb_memplugin.capture.guard import Quietly, logger
from tb_memplugin.capture.new_files import LogDir, join, process_name
from tb_memplugin.capture.watching.clock import WatchClock
from tb_memplugin.capture.watching.counters import DeviceNames, read_devices
from tb_memplugin.capture.watching.curve import Curve
from tb_memplugin.capture.watching.curve_file import CurveFile
from tb_memplugin.capture.watching.outputs import NOT_SHOWN, Output
from tb_memplugin.capture.watching.snapshots import save_snapshot, watched_run
from tb_memplugin.capture.watching.triggers import Triggers
from tb_memplugin.readers.watch.layout import UNKNOWN, RecordEvent

NOT_WRITTEN = "the memory curve could not be written, and training continues"
SNAPSHOT_SECONDS = 60.0
SIGNAL = "signal"


class SampleRecorder:
    """Records samples of all devices, `interval_ns` apart. Methods are called by one thread, and never raise."""

    def __init__(self, logdir: LogDir, interval_ns: int, at: float, clock: WatchClock) -> None:
        self._logdir = logdir
        self._clock = clock
        self._curve = Curve(clock.now_ns(), interval_ns)
        self._file = CurveFile(self._path)
        self._names = DeviceNames()
        self._triggers = Triggers(at)
        self.outputs: list[Output] = []
        self._saved = float("-inf")  # time of the last snapshot
        self.asked = False  # for a snapshot

    def folder(self) -> str:
        """Return the folder of this process's run, which is created with the first call."""
        return watched_run(self._logdir).folder

    def _path(self) -> str:
        return join(self.folder(), f"{process_name()}.watch")

    def sample(self, step: tuple[int, int], event: RecordEvent = RecordEvent.SAMPLE) -> str:
        """Record a sample, and return the reason for a snapshot now; empty for none. `step`: number and begin in ns."""
        readings = self._names.distinct(read_devices())
        if not readings and not self._curve.count:
            return ""  # the job has not started its devices
        with Quietly(NOT_WRITTEN):
            head = self._clock.now_ns(), event, *step
            self._curve.add(head, {reading.device: reading.counters for reading in readings})
            self._file.write(self._curve, last=event is RecordEvent.FINISHED)
        for output in self.outputs:
            with Quietly(NOT_SHOWN):
                output.show(readings, step[0])
        reason = self._triggers.reason(readings, step[0])
        if time.monotonic() < self._saved + SNAPSHOT_SECONDS:
            return ""
        return SIGNAL if self.asked else reason

    def snapshot(self, reason: str, step: int) -> None:
        """Save a snapshot."""
        self._saved, self.asked = time.monotonic(), False
        self._triggers.saved()
        logger.info("tb_memplugin: saving a snapshot: %s", reason)
        save_snapshot(self._logdir, None if step == UNKNOWN else step, reason)

    def close(self) -> None:
        """Close the file and the outputs."""
        closing: list[Any] = [self._file, *self.outputs]
        for each in closing:
            with Quietly("watching could not be ended in order"):
                each.close()
