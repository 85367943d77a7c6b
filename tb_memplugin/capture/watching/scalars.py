"""The curves as scalars for TensorBoard's Time Series tab, in an event file beside the curve."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_memplugin.capture.new_files import join
from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.capture.watching.curve import AppendFile
from tb_memplugin.readers.watch_layout import DeviceColumn

TAGS = {DeviceColumn.IN_USE: "in use", DeviceColumn.PEAK: "peak", DeviceColumn.LIMIT: "limit"}
GIB = 1 << 30
# TensorBoard draws a thousand points of a curve, so points are at least a thousandth of its length apart.
POINTS = 1000
# A job that marks steps marks its first one within this time. After it, the x axis is seconds, and cannot change.
UNDECIDED_SECONDS = 60.0


class TensorBoardScalars:
    """An event file with GiB in use, peak and limit of each device, over the marked steps, or else over seconds."""

    def __init__(self, folder: Callable[[], str]) -> None:
        """`folder` is called with the first sample. OSError where its files cannot be written, also from `show`."""
        self._folder = folder
        self._writer: RecordWriter | None = None
        self._began = self._next = time.time()
        self._has_steps: bool | None = None
        self._waiting: list[tuple[float, int, Summary]] = []  # time, step
        self._last = 0  # on the x axis

    def show(self, readings: list[Reading], step: int, gauges: object) -> None:
        now = time.time()
        if now < self._next or not readings:
            return
        self._next = now + (now - self._began) / POINTS
        self._waiting.append((now, step, _summary(readings)))
        if self._has_steps is None and (step >= 0 or now - self._began > UNDECIDED_SECONDS):
            self._has_steps = step >= 0
        if self._has_steps is not None:
            self._write()

    def close(self) -> None:
        self._write()
        if self._writer is not None:
            self._writer.close()

    def _write(self) -> None:
        if self._writer is None and self._waiting:
            name = f"events.out.tfevents.{int(self._began)}.{platform.node() or 'localhost'}.memory"
            self._writer = RecordWriter(AppendFile(join(self._folder(), name)))
            self._writer.write(Event(wall_time=self._began, file_version="brain.Event:2").SerializeToString())
        while self._waiting and self._writer is not None:
            now, step, summary = self._waiting.pop(0)
            # TensorBoard takes a smaller step for a restart, and drops what is beyond it.
            self._last = max(self._last, step if self._has_steps else int(now - self._began))
            event = Event(wall_time=now, step=self._last, summary=summary)
            self._writer.write(event.SerializeToString())


def _summary(readings: list[Reading]) -> Summary:
    return Summary(
        value=[
            Summary.Value(tag=f"memory (GiB)/{reading.device.name} {name}", simple_value=value / GIB)
            for reading in readings
            for column, name in TAGS.items()
            if (value := reading.counters[column]) >= 0
        ]
    )
