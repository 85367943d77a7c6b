"""Memory of NVIDIA GPUs outside of the frameworks' allocators, by NVML, where nvidia-ml-py is installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.capture.watching.paced import Paced
from tb_memplugin.readers.watch_layout import MAX_LABEL, PROCESS, UNKNOWN, MemoryPart

MAX_PROCESSES = 8  # that get names on a device while the job runs, so that its file stays small


class DeviceMemory:
    """The memory of GPUs by process. Without NVML, readings remain as they are."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._is_missing = False
        self._devices: dict[int, Paced[dict[str, int]]] = {}  # by the number in CUDA

    def add_to(self, readings: Iterable[Reading]) -> list[Reading]:
        """Return the readings, with what NVML counts of their devices."""
        return [
            reading._replace(parts={**reading.parts, **self._parts(reading.ordinal)})
            if reading.ordinal != UNKNOWN and not self._is_missing
            else reading
            for reading in readings
        ]

    def _parts(self, ordinal: int) -> dict[str, int]:
        try:
            if self._nvml is None:
                import pynvml

                pynvml.nvmlInit()
                self._nvml = pynvml
            if ordinal not in self._devices:
                self._devices[ordinal] = Paced(partial(_read, self._nvml, _handle(self._nvml, ordinal), {}))
            return self._devices[ordinal]()
        except Exception:  # each call raises errors of NVML's own
            self._is_missing = self._nvml is None
            return {}


def _handle(nvml: Any, ordinal: int) -> Any:
    """Return NVML's handle. CUDA numbers the devices that it sees; those of one model are in NVML's order."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    name = visible.split(",")[ordinal].strip() if visible else str(ordinal)
    return nvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else nvml.nvmlDeviceGetHandleByUUID(name)


def _read(nvml: Any, handle: Any, names: dict[int, str]) -> dict[str, int]:
    """Return the parts of a device. `names`: of the processes so far, by their ids."""
    whole = nvml.nvmlDeviceGetMemoryInfo(handle)
    parts: dict[str, int] = {MemoryPart.USED: int(whole.used), MemoryPart.TOTAL: int(whole.total)}
    listed = {found.pid: found.usedGpuMemory for found in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    # In a container, NVML has the ids of the host; but this process uses the device, so a single one is this one.
    own = next(iter(listed)) if len(listed) == 1 else os.getpid()
    sizes = {pid: size for pid, size in listed.items() if size}  # None where it is not permitted
    if own in sizes:
        parts[MemoryPart.OWN] = sizes.pop(own)
        for pid in sorted(sizes, key=lambda pid: -sizes[pid]):
            if pid in names or len(names) < MAX_PROCESSES:
                parts[names.setdefault(pid, f"{PROCESS}{_name(nvml, pid)}"[:MAX_LABEL])] = sizes[pid]
    return parts


def _name(nvml: Any, pid: int) -> str:
    try:
        name = nvml.nvmlSystemGetProcessName(pid)
        text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
        return f"{os.path.basename(text.split(' ')[0])} ({pid})"
    except Exception:  # not permitted, or ended
        return f"process {pid}"
