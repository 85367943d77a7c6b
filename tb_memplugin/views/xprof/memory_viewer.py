"""XProf's own Memory Viewer answer, from a Recording: for the stock page and for scripts that read its JSON.

The schema is XProf 2.24's: numbers in MiB unless a field says bytes, fields of no value left out, 64-bit ids as
strings. Its axis is the program order in place of the events of one heap-simulator trace. Point i of the series
is what is live before instruction i, so the series has one point more than the program has instructions, and
reaches the peak one point after `peakHeapSizePosition`, which is how XProf's page reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Text

MIB = 2**20
SMALL = 16384  # bytes; XProf shows the buffers below as one
SCOPED_SPACE = 1  # only VMEM has scoped allocations
POINTER_TABLE = "tuple"  # the dtype of a table of pointers to a tuple's elements, whose memory is never reused
CATEGORIES = (  # the first that applies
    (RegionKind.PARAMETER, "Parameter"),
    (RegionKind.OUTPUT, "Output"),
    (RegionKind.CONSTANT, "Constant"),
)
ATTRIBUTES = (
    (RegionKind.PARAMETER, "entry computation parameter"),
    (RegionKind.OUTPUT, "may-be live out"),
)

Json = dict[str, Any]
Mask = npt.NDArray[np.bool_]


def memory_viewer(recordings: list[Recording], memory_space: int) -> Json:
    """XProf's answer for one memory space of one program, whose recordings these are.

    A memory space without allocations gives the program's names and nothing else. Raises InputError where the
    recordings are of no program.
    """
    programs = [(recording, recording.program) for recording in recordings if recording.program is not None]
    if not programs:
        raise InputError("No compiled program", "memory viewer", "choose a module that the run lists")
    names = _present({"moduleName": programs[0][1].module, "entryComputationName": programs[0][1].entry_computation})
    for recording, program in programs:
        if program.memory_space == memory_space:
            return {**names, **_present(_Answer(recording, program).fields())}
    return names


class _Answer:
    """The fields of one recording. Thread-locals are no part of its memory; XProf leaves them out as we do."""

    def __init__(self, recording: Recording, program: Program) -> None:
        self.recording = recording
        self.program = program
        self.rows = recording.allocations
        self.regions = recording.regions
        self.kind = self.regions.kind[self.rows.region]
        self.temporary: Mask = self.kind == RegionKind.TEMPORARY

    def fields(self) -> Json:
        curve, top = usage(self.recording), peak(self.recording)
        unpadded = int(curve.unpadded[top.position]) if len(curve.unpadded) else 0
        held = self._region_bytes(self.regions.kind != RegionKind.TEMPORARY) - self._bytes_of(RegionKind.THREAD_LOCAL)
        scoped = self.program.scoped_bytes if self.program.memory_space == SCOPED_SPACE else 0
        return {
            "heapSizes": self._series(curve.live),
            "unpaddedHeapSizes": self._series(curve.unpadded),
            "hloInstructionNames": [*_texts(self.program.name), ""],
            **self._at(top.position),
            "logicalBufferSpans": self._spans(),
            "peakHeapMib": top.bytes / MIB,
            "peakUnpaddedHeapMib": unpadded / MIB,
            "peakHeapSizePosition": top.position,
            "entryComputationParametersMib": self._bytes_of(RegionKind.PARAMETER) / MIB,
            "nonReusableMib": self._region_bytes(self._not_reusable()) / MIB,
            "maybeLiveOutMib": self._bytes_of(RegionKind.OUTPUT) / MIB,
            "totalBufferAllocationMib": reserved_bytes(self.recording) / MIB,
            "indefiniteBufferAllocationMib": held / MIB,
            "maxScopedVmemAllocationMib": scoped / MIB,
            "maxScopedVmemInstructionName": self.program.scoped_instruction if scoped else "",
            "indefiniteLifetimes": list(self._indefinite()),
            "bufferBlocks": list(self._blocks()),
        }

    def _region_bytes(self, which: Mask) -> int:
        return int(self.regions.size[which].sum())

    def _bytes_of(self, kind: RegionKind) -> int:
        return self._region_bytes((self.regions.kind & kind) != 0)

    def _not_reusable(self) -> Mask:
        """Per region: thread-local, or with a tuple in it."""
        strings = self.rows.dtype.strings
        tuples = [code for code in range(len(strings)) if strings[code] == POINTER_TABLE]
        mask: Mask = (self.regions.kind & RegionKind.THREAD_LOCAL) != 0
        mask[self.rows.region[np.isin(self.rows.dtype.codes, tuples)]] = True
        return mask

    def _series(self, curve: I64) -> list[float]:
        """First what is held throughout, before the program starts; padding is known only while it runs."""
        held = int(self.rows.charge[~self.temporary].sum())
        series: list[float] = (np.r_[held, curve] / MIB).tolist()
        return series

    def _at(self, position: int) -> Json:
        """The buffers at a position: what is held throughout, then temporaries as they came."""
        rows = self.rows
        live = np.flatnonzero((rows.charge > 0) & (rows.start <= position) & (position < rows.end))
        live = live[np.lexsort((live, rows.start[live], self.temporary[live]))]
        charge = rows.charge[live]
        small = int(charge[charge < SMALL].sum())
        sizes = np.r_[charge[charge >= SMALL], [small] * (small > 0)]
        buffers = [self._buffer(row) for row in live[charge >= SMALL].tolist()]
        if small:
            buffers.append(
                {"label": f"small (<{SMALL} bytes)", "logicalBufferId": -1, "logicalBufferSizeMib": small / MIB}
            )
        buffers = [{"numbered": number, **buffer} for number, buffer in enumerate(buffers)]
        by_size = np.argsort(-sizes, kind="stable")
        return {
            "maxHeap": buffers,
            "maxHeapBySize": [buffers[number] for number in by_size.tolist()],
            "maxHeapToBySize": np.argsort(by_size).tolist(),
            "bySizeToMaxHeap": by_size.tolist(),
        }

    def _buffer(self, row: int) -> Json:
        rows = self.rows
        name, shape, scope = rows.name[row], rows.shape[row], rows.scope[row]
        kind = int(self.kind[row])
        return _present(
            {
                "label": f"{_split(name)[0]}: {shape} # {scope}",
                "logicalBufferId": int(rows.id[row]),
                "logicalBufferSizeMib": int(rows.charge[row]) / MIB,
                "unpaddedShapeMib": int(rows.requested[row]) / MIB,
                "instructionName": name,
                "shapeString": shape,
                "tfOpName": scope,
                "groupName": next((text for flag, text in CATEGORIES if kind & flag), "Temporary"),
                "opCode": rows.op[row],
                "sourceInfo": self._source(int(rows.stack[row])),
            }
        )

    def _source(self, leaf: int) -> Json:
        frames = self.recording.stacks.frames(leaf)
        if not frames:
            return {}
        _, file, line = frames[0]
        stack = "\n".join(f"{file}:{line}" for _, file, line in frames)
        return _present({"fileName": file, "lineNumber": line, "stackFrame": stack})

    def _drawn(self) -> I64:
        """Temporary rows with memory and a life of their own, by region."""
        rows = self.rows
        drawn = np.flatnonzero(self.temporary & (rows.charge > 0) & (rows.end > rows.start))
        drawn = drawn[np.argsort(rows.region[drawn], kind="stable")]
        return drawn

    def _spans(self) -> dict[str, Json]:
        """Per buffer the point before which it comes, and the last point at which it is live."""
        which = self._drawn()
        start, limit = np.maximum(self.rows.start[which], 0).tolist(), self.rows.end[which].tolist()
        ids = self.rows.id[which].tolist()
        return {str(b): _present({"start": s, "limit": e}) for b, s, e in zip(ids, start, limit, strict=True)}

    def _indefinite(self) -> Iterator[Json]:
        """Allocations held for the whole program, each with all its logical buffers."""
        rows = self.rows
        which = np.flatnonzero(~self.temporary & ((self.kind & RegionKind.THREAD_LOCAL) == 0))
        which = which[np.argsort(rows.region[which], kind="stable")]
        reusable = ~self._not_reusable()
        columns = (rows.region[which].tolist(), rows.id[which].tolist(), rows.size[which].tolist())
        members = zip(*columns, _texts(rows.name, which), _texts(rows.shape, which), strict=True)
        for region, group in groupby(members, key=itemgetter(0)):
            buffers = [_logical_buffer(*member[1:]) for member in group]
            attributes = [text for flag, text in ATTRIBUTES if int(self.regions.kind[region]) & flag]
            shapes = {buffer.get("shape", "") for buffer in buffers}
            yield _present(
                {
                    "id": _id_text(int(self.regions.index[region])),
                    "sizeMib": int(self.regions.size[region]) / MIB,
                    "attributes": [*attributes, "reusable"] if reusable[region] else attributes,
                    "logicalBuffers": buffers,
                    "commonShape": shapes.pop() if len(shapes) == 1 else "",
                }
            )

    def _blocks(self) -> Iterator[Json]:
        """The temporary allocations, stacked, and in each its buffers. Sizes and offsets are bytes."""
        which = self._drawn()
        containers = np.flatnonzero(self.regions.kind == RegionKind.TEMPORARY)
        bounds = np.searchsorted(self.rows.region[which], np.append(containers, len(self.regions))).tolist()
        base = 0
        for number, container in enumerate(containers.tolist()):
            size = int(self.regions.size[container])
            yield _present(
                {
                    "logicalBufferId": -1,
                    "name": "Temporary",
                    "offset": base,
                    "size": size,
                    "endStep": self.recording.length,
                    "category": "Temporary",
                    "color": "#ffffff",
                }
            )
            yield from self._blocks_of(which[bounds[number] : bounds[number + 1]], base)
            base += size

    def _blocks_of(self, which: I64, base: int) -> Iterator[Json]:
        rows = self.rows
        sources = {leaf: self._source(leaf) for leaf in np.unique(rows.stack[which]).tolist()}
        columns: dict[str, Iterable[Any]] = {
            "logicalBufferId": rows.id[which].tolist(),
            "name": _texts(rows.name, which),
            "offset": (rows.offset[which] + base).tolist(),
            "size": rows.size[which].tolist(),
            "startStep": np.maximum(rows.start[which], 0).tolist(),
            "endStep": rows.end[which].tolist(),
            "tfOpName": _texts(rows.scope, which),
            "category": ["Temporary"] * len(which),
            "sourceInfo": map(sources.__getitem__, rows.stack[which].tolist()),
            "shapeString": _texts(rows.shape, which),
            "unpaddedSize": rows.requested[which].tolist(),
            "color": map(_color, range(len(which))),
        }
        for values in zip(*columns.values(), strict=True):
            yield {name: value for name, value in zip(columns, values, strict=True) if value}


def _logical_buffer(buffer: int, size: int, name: str, shape: str) -> Json:
    instruction, index = _split(name)
    fields = {"id": _id_text(buffer), "shape": shape, "sizeMib": size / MIB, "hloName": instruction}
    return _present({**fields, "shapeIndex": index})


def _split(name: str) -> tuple[str, list[str]]:
    """An instruction's name and the shape index behind it: `fusion{1,0}` is fusion, 1 and 0."""
    if not name.endswith("}"):
        return name, []
    instruction, _, index = name[:-1].rpartition("{")
    return instruction, index.split(",")


def _color(number: int) -> str:
    """Hues near a golden angle apart, so that neighbours differ."""
    return f"hsl({number * 137 % 360},60%,55%)"


def _id_text(number: int) -> str:
    return str(number) if number else ""


def _present(fields: Json) -> Json:
    """Without the fields that say nothing: zero, empty text, empty lists."""
    return {name: value for name, value in fields.items() if value}


def _texts(column: Text, which: I64 | None = None) -> list[str]:
    """The column's texts; each distinct one is decoded once."""
    codes = column.codes if which is None else column.codes[which]
    used, at = np.unique(codes, return_inverse=True)
    words = [column.strings[code] if code >= 0 else "" for code in used.tolist()]
    return [words[i] for i in at.tolist()]
