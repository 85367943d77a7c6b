"""The first line of a watch file: when it begins, and which devices its records have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.readers.common.limits import MAX_DEVICES, MAX_TIME_US, too_many
from tb_memplugin.readers.watch.layout import VERSION, VERSION_KEY, CounterSource

MAX_HEADER_BYTES = 1 << 16
MAX_NAME = 300  # characters
MAX_INTERVAL_NS = 10**18
REMEDY = "is it damaged? Copy it again, or delete it"


@dataclass(frozen=True, slots=True)
class WatchedDevice:
    """A device, named as in the device profiles of its process."""

    name: str
    source: CounterSource


@dataclass(frozen=True, slots=True)
class WatchHeader:
    """`start_ns`: since 1970. `interval_ns`: the intended time between samples."""

    start_ns: int
    interval_ns: int
    devices: tuple[WatchedDevice, ...]

    def line(self) -> bytes:
        """Return the line that begins a file."""
        devices = [{"name": device.name, "source": device.source} for device in self.devices]
        content = {VERSION_KEY: VERSION, "start_ns": self.start_ns, "interval_ns": self.interval_ns, "devices": devices}
        return json.dumps(content).encode() + b"\n"


def read_header(data: bytes | memoryview, path: str) -> tuple[WatchHeader, int]:
    """Return the header of a file, and where its records begin. InputError where it has none."""
    line, newline, _ = bytes(data[:MAX_HEADER_BYTES]).partition(b"\n")
    try:
        content = json.loads(line) if newline else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or VERSION_KEY not in content:
        raise InputError("Not a file of capture.watch", path, REMEDY)
    if content[VERSION_KEY] != VERSION:
        raise InputError("written by another version of tb-memplugin", path, "install the version that wrote it")
    start = _integer(content, "start_ns", MAX_TIME_US * 1000, path)
    interval = _integer(content, "interval_ns", MAX_INTERVAL_NS, path)
    return WatchHeader(start, interval, _devices(content.get("devices"), path)), len(line) + 1


def _integer(content: dict[str, Any], name: str, limit: int, path: str) -> int:
    value = content.get(name)
    if type(value) is not int or not 0 <= value <= limit:
        raise InputError(f"damaged: {name} is not a possible time", path, REMEDY)
    return value


def _devices(listed: object, path: str) -> tuple[WatchedDevice, ...]:
    if not isinstance(listed, list):
        raise InputError("damaged: it has no list of devices", path, REMEDY)
    if len(listed) > MAX_DEVICES:
        raise too_many("devices", len(listed), MAX_DEVICES, path)
    devices = tuple(_device(device, path) for device in listed)
    if len({device.name for device in devices}) < len(devices):
        raise InputError("damaged: several devices have one name", path, REMEDY)
    return devices


def _device(listed: object, path: str) -> WatchedDevice:
    try:
        name, source = (listed["name"], CounterSource(listed["source"])) if isinstance(listed, dict) else ("", None)
    except (KeyError, ValueError):
        name, source = "", None
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or source is None:
        raise InputError("damaged: a device has no name or an unknown source", path, REMEDY)
    return WatchedDevice(name, source)
