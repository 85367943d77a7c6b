"""The devices of a fleet as columns: in JSON, in the page's table, and in exports, which list programs as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, get_type_hints

import numpy as np

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.model.fleet import Device, Fleet
from tb_memplugin.model.text import Text
from tb_memplugin.questions.asking.payload import Column, Table
from tb_memplugin.questions.export.formats import ExportColumn, ExportTable
from tb_memplugin.questions.fleet.words import outlier_text
from tb_memplugin.questions.recording.columns import Numbers
from tb_memplugin.questions.records import record


class FleetDeviceJson(TypedDict):
    """A device with its peak, and its distance from the median device."""

    host: str
    """The host."""
    run: str
    """The session."""
    device: str
    """The device, as in `TPU core 2`."""
    memory: str
    """The memory; devices with equal text are compared."""
    measured: bool
    """False: the peak is the plan of the host's largest program."""
    peak_bytes: int
    """The peak."""
    capacity_bytes: int | None
    """The capacity."""
    from_median_bytes: int
    """The peak minus the median; for a device whose name is apart, minus the median of the name."""
    growth: str | None
    """The site that leaks fastest; null without a leak, or with too few steps to see one."""
    growth_bytes: int | None
    """The bytes that it adds in each step."""


class FleetDeviceRow(FleetDeviceJson):
    """A row of the page's table of devices; an unknown number is 0, and an unknown text is empty."""

    id: str
    """Id of its recording."""
    title: str
    """Title of its recording."""
    cause: str
    """The cause of a large distance from the median; empty for other devices."""
    growth_unit: str
    """A step, or the event that counts as one."""
    outlier: bool


class FleetExportRow(TypedDict, total=False):
    """A row of an export: a device, a program of a host, or a file with a problem. Unknown values are None."""

    capture: str
    run: str
    host: str
    kind: str
    """`device`, `program` or `problem`."""
    name: str
    """The device or the program."""
    memory: str
    peak_bytes: int
    capacity_bytes: int
    reserved_bytes: int
    measured: bool
    outlier: bool
    from_median_bytes: int
    largest_site: str
    largest_site_bytes: int
    cause: str
    cause_bytes: int
    growth: str
    growth_bytes: int
    fingerprint: str
    problem: str
    file: str


COLUMNS = tuple(FleetExportRow.__annotations__)


def device_json(memory: MemoryAnswer, device: Device) -> FleetDeviceJson:
    """Return a device for JSON."""
    return record(FleetDeviceJson, device, device.summary, **_compared(memory, device))


def device_table(answer: FleetAnswer) -> Table:
    """Return the devices as columns for the page, in natural order of hosts."""
    memories = {memory.peaks.memory: memory for memory in answer.memories}
    far = {device.recording_id for memory in answer.memories for device in memory.peaks.outliers}
    explained = far | {memory.peaks.worst.recording_id for memory in answer.memories}
    hosts, rows = len(answer.fleet.hosts), list[FleetDeviceRow]()
    for device in answer.fleet.devices:
        memory, id = memories[device.summary.memory], device.recording_id
        cause = outlier_text(memory, device, hosts) if id in explained and memory.causes(device) else ""
        own = {"id": id, "cause": cause, "outlier": id in far, **_compared(memory, device)}
        rows.append(record(FleetDeviceRow, device, device.summary, **own))
    return {name: _page_column(kind, rows, name) for name, kind in get_type_hints(FleetDeviceRow).items()}


def fleet_table(fleets: Sequence[Fleet]) -> ExportTable:
    """Return the rows of captures as columns for an export, in order of hosts."""
    rows = [row for fleet in fleets for row in _export_rows(FleetAnswer(fleet))]
    return {name: _export_column(kind, rows, name) for name, kind in get_type_hints(FleetExportRow).items()}


def known(size: int) -> int | None:
    """Return a size, or None for -1, which stands for an unknown one."""
    return size if size >= 0 else None


def _compared(memory: MemoryAnswer, device: Device) -> dict[str, Any]:
    """Return the values that differ from a device's attributes: None replaces 0 and the empty texts of its summary."""
    found = device.summary
    return {
        "capacity_bytes": found.capacity_bytes or None,
        "from_median_bytes": memory.peaks.distance(device),
        "growth": found.growth or None,
        "growth_bytes": found.growth_bytes if found.growth else None,
    }


def _page_column(kind: Any, rows: Sequence[Mapping[str, Any]], name: str) -> Column:
    values = [row[name] for row in rows]
    if kind in (str, str | None):
        return Text.of([value or "" for value in values])
    return np.array([value or 0 for value in values], dtype=np.uint8 if kind is bool else np.float64)


def _export_column(kind: Any, rows: Sequence[Mapping[str, Any]], name: str) -> ExportColumn:
    values = [row.get(name) for row in rows]
    if kind is str:
        return Text.of([value or "" for value in values])
    known = np.array([value is not None for value in values], dtype=bool)
    return Numbers(np.array([value or 0 for value in values], dtype=bool if kind is bool else np.int64), known)


def _export_rows(answer: FleetAnswer) -> Iterator[FleetExportRow]:
    capture = answer.fleet.name
    for memory in answer.memories:
        far = {id(device) for device in memory.peaks.outliers}
        for device in memory.peaks.devices:
            yield _device_row(memory, device, id(device) in far, capture)
    for file in answer.fleet.files:
        start = {"capture": capture, "file": file.path}
        for use in file.programs:
            sizes = {"peak_bytes": known(use.peak_bytes), "reserved_bytes": known(use.reserved_bytes)}
            yield record(FleetExportRow, use, file, kind="program", name=use.module, memory=None, **sizes, **start)
        if file.problem:
            yield record(FleetExportRow, file, kind="problem", **start)


def _device_row(memory: MemoryAnswer, device: Device, outlier: bool, capture: str) -> FleetExportRow:
    found = device.summary
    largest = found.sites[0] if found.sites else None
    cause = next(iter(memory.causes(device)), None) if outlier else None
    own = {
        "capture": capture,
        "kind": "device",
        "name": found.device,
        "outlier": outlier,
        "largest_site": largest.text if largest else None,
        "largest_site_bytes": largest.bytes if largest else None,
        "cause": cause.text if cause else None,
        "cause_bytes": cause.difference if cause else None,
        "file": device.path,
    }
    return record(FleetExportRow, device, found, **own, **_compared(memory, device))
