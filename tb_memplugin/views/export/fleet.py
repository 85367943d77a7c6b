"""Fleets as a table: a row for each device, for each program of a host, and for each file with a problem."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from tb_memplugin.analysis.fleet.answer import FleetAnswer, MemoryAnswer
from tb_memplugin.model.fleet import Device, FileSummary, Fleet, ProgramUse
from tb_memplugin.model.text import Text
from tb_memplugin.views.export.export_table import ExportTable, Numbers, export_cells

SIZES = {
    "peak_bytes", "capacity_bytes", "reserved_bytes", "from_median_bytes", "largest_site_bytes", "cause_bytes",
    "growth_bytes",
}  # fmt: skip
FLAGS = {"measured", "outlier"}
COLUMNS = (
    "capture", "run", "host", "kind", "name", "memory", "peak_bytes", "capacity_bytes", "reserved_bytes", "measured",
    "outlier", "from_median_bytes", "largest_site", "largest_site_bytes", "cause", "cause_bytes", "growth",
    "growth_bytes", "fingerprint", "problem", "file",
)  # fmt: skip


def fleet_table(fleets: Sequence[Fleet]) -> ExportTable:
    """Return the rows of captures as columns, in order of hosts."""
    rows = [row for fleet in fleets for row in _rows(FleetAnswer(fleet))]
    table: ExportTable = {}
    for name in COLUMNS:
        values = [row.get(name) for row in rows]
        if name in SIZES:
            known = np.array([value is not None for value in values], dtype=bool)
            table[name] = Numbers(np.array([value or 0 for value in values], dtype=np.int64), known)
        elif name in FLAGS:
            table[name] = np.array([bool(value) for value in values], dtype=bool)
        else:
            table[name] = Text.of([value or "" for value in values])
    return table


def write_rows_json(table: ExportTable, stream: BinaryIO) -> None:
    """Write a list of objects, one a line; unknown values are null."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
    row = "{" + ", ".join(f'"{heading}": %s' for heading in table) + "}"
    cells = zip(*(export_cells(column, json.dumps, "null") for column in table.values()), strict=True)
    text.write("[\n" + ",\n".join(map(row.__mod__, cells)) + "\n]\n")
    text.detach()  # flushes, and leaves the stream open


def _rows(answer: FleetAnswer) -> Iterator[dict[str, Any]]:
    outliers = {id(device) for memory in answer.memories for device in memory.peaks.outliers}
    memories = {memory.peaks.memory: memory for memory in answer.memories}
    for memory in answer.memories:
        for device in memory.peaks.devices:
            row = _device_row(device, memories[device.summary.memory], id(device) in outliers)
            yield {"capture": answer.fleet.name, **row}
    for file in answer.fleet.files:
        start = {"capture": answer.fleet.name, "run": file.run, "host": file.host, "file": file.path}
        for use in file.programs:
            yield {**start, **_program_row(use)}
        if file.problem:
            yield {**start, **_problem_row(file)}


def _device_row(device: Device, memory: MemoryAnswer, outlier: bool) -> dict[str, Any]:
    found = device.summary
    largest = found.sites[0] if found.sites else None
    cause = next(iter(memory.causes(device)), None) if outlier else None
    return {
        "run": device.run,
        "host": device.host,
        "kind": "device",
        "name": found.device,
        "memory": found.memory,
        "measured": found.measured,
        "outlier": outlier,
        "peak_bytes": found.peak_bytes,
        "capacity_bytes": found.capacity_bytes or None,
        "from_median_bytes": memory.peaks.distance(device),
        "largest_site": largest.text if largest else None,
        "largest_site_bytes": largest.bytes if largest else None,
        "cause": cause.text if cause else None,
        "cause_bytes": cause.difference if cause else None,
        "growth": found.growth,
        "growth_bytes": found.growth_bytes if found.growth else None,
        "file": device.path,
    }


def _program_row(use: ProgramUse) -> dict[str, Any]:
    return {
        "kind": "program",
        "name": use.module,
        "fingerprint": use.fingerprint,
        "peak_bytes": use.peak_bytes if use.peak_bytes >= 0 else None,
        "reserved_bytes": use.reserved_bytes if use.reserved_bytes >= 0 else None,
        "problem": use.problem,
    }


def _problem_row(file: FileSummary) -> dict[str, Any]:
    return {"kind": "problem", "problem": file.problem}
