"""Watch files without a job, as capture.watch writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tb_memplugin.model.kinds import HOST_MEMORY
from tb_memplugin.readers.watch_layout import (
    INTEGER,
    UNKNOWN,
    CounterSource,
    DeviceColumn,
    NamedColumn,
    RecordColumn,
    RecordEvent,
    WatchedDevice,
    WatchHeader,
    first_column,
)

START_NS = 1_800_000_000_000_000_000
SECOND_NS = 10**9
MIB = 1 << 20


def watch_bytes(
    devices: Mapping[str, Sequence[Mapping[DeviceColumn, int]]],
    *,
    start_ns: int = START_NS,
    interval_ns: int = SECOND_NS,
    steps: Mapping[int, int] | None = None,
    finished: bool = False,
    out_of_memory: bool = False,
    source: CounterSource = CounterSource.MEMORY_STATS,
    named: Mapping[tuple[str, str], Sequence[int]] | None = None,
) -> bytes:
    """Return a file. `devices`: counters of each sample, by device. `steps`: numbers by the sample they begin at.

    `named`: columns by device and name.
    """
    listed = tuple(WatchedDevice(name, CounterSource.PROC if name == HOST_MEMORY else source) for name in devices)
    header = WatchHeader(start_ns, interval_ns, listed, tuple(NamedColumn(*key) for key in named or {}))
    count = max((len(samples) for samples in devices.values()), default=0)
    records = np.full((count, header.width), UNKNOWN, np.int64)
    records[:, RecordColumn.TIME] = start_ns + np.arange(count) * interval_ns
    records[:, RecordColumn.EVENT] = RecordEvent.SAMPLE
    for at, number in sorted((steps or {}).items()):
        records[at:, RecordColumn.STEP], records[at:, RecordColumn.STEP_TIME] = number, start_ns + at * interval_ns
    for number, samples in enumerate(devices.values()):
        for row, counters in enumerate(samples):
            for column, value in counters.items():
                records[row, first_column(number) + column] = value
    for number, values in enumerate((named or {}).values(), first_column(len(devices))):
        records[: len(values), number] = values
    if count and out_of_memory:
        records[-2:, RecordColumn.EVENT] = RecordEvent.OUT_OF_MEMORY
    if count and finished:
        records[-1, RecordColumn.EVENT] = RecordEvent.FINISHED
    return header.line() + records.astype(INTEGER).tobytes()


def saw_tooth(
    samples: int, *, low: int = 512 * MIB, high: int = 900 * MIB, limit: int = 1024 * MIB, growth: int = 0
) -> list[dict[DeviceColumn, int]]:
    """Return the counters of a loop: four samples a step, whose floor grows by `growth` bytes a step."""
    in_use = [low + (high - low) * (row % 4) // 3 + growth * (row // 4) for row in range(samples)]
    return [
        {DeviceColumn.IN_USE: used, DeviceColumn.PEAK: max(in_use[: row + 1]), DeviceColumn.LIMIT: limit,
         DeviceColumn.LARGEST_FREE: (limit - used) // 2}
        for row, used in enumerate(in_use)
    ]  # fmt: skip


def live_file(
    logdir: Path, samples: int = 60, *, devices: int = 2, finished: bool = False, process: str = "host0_7"
) -> Path:
    """Write a file of a loop into a run of a logdir, and return its path."""
    folder = logdir / "device_profiles" / f"2027_01_15_08_00_00_{process}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{process}.watch"
    content = {f"cuda:{number}": saw_tooth(samples) for number in range(devices)}
    steps = {at: at // 4 for at in range(0, samples, 4)}
    path.write_bytes(watch_bytes(content, steps=steps, finished=finished))
    return path
