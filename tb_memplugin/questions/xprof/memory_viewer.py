"""The memory viewer of a program in XProf's JSON format."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.program import Program
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.xprof import Json

MIB = 2**20
MIN_BUFFER_BYTES = 16384  # XProf shows smaller buffers as one
CATEGORIES = (  # the first that applies
    (RegionKind.PARAMETER, "Parameter"),
    (RegionKind.OUTPUT, "Output"),
    (RegionKind.CONSTANT, "Constant"),
)


def nonempty_fields(fields: Json) -> Json:
    """Return the fields without zeros, empty texts and empty lists, which XProf leaves out."""
    return {name: value for name, value in fields.items() if value}


def source_info(recording: Recording, leaf: int) -> Json:
    """Return the source line and the stack of a leaf frame; empty without a stack."""
    frames = recording.stacks.frames(leaf)
    if not frames:
        return {}
    _, file, line = frames[0]
    stack = "\n".join(f"{file}:{line}" for _, file, line in frames)
    return nonempty_fields({"fileName": file, "lineNumber": line, "stackFrame": stack})


def split_name(name: str) -> tuple[str, list[str]]:
    """Split a buffer's name into instruction and shape index: `fusion{1,0}` is fusion, 1 and 0."""
    if not name.endswith("}"):
        return name, []
    instruction, _, index = name[:-1].rpartition("{")
    return instruction, index.split(",")


def id_text(number: int) -> str:
    """Format a 64-bit id, which XProf writes as a string; zero is empty."""
    return str(number) if number else ""


POINTER_TABLE = "tuple"  # the dtype of a table of pointers to a tuple's elements, whose memory is never reused


class ProgramTables:
    """The buffers and regions of one program in one memory space. Thread-local memory does not count, as in XProf."""

    def __init__(self, recording: Recording, program: Program) -> None:
        self.recording = recording
        self.program = program
        self.rows = recording.allocations
        self.regions = recording.regions
        self.kind = self.regions.kind[self.rows.region]  # per row
        self.temporary: Mask = self.kind == RegionKind.TEMPORARY  # per row

    def region_bytes(self, which: Mask) -> int:
        """Return the total size of some regions."""
        return int(self.regions.size[which].sum())

    def bytes_of(self, kind: RegionKind) -> int:
        """Return the total size of the regions of a kind."""
        return self.region_bytes((self.regions.kind & kind) != 0)

    def not_reusable(self) -> Mask:
        """Return per region whether it is thread-local, or contains a tuple."""
        mask: Mask = (self.regions.kind & RegionKind.THREAD_LOCAL) != 0
        mask[self.rows.region[self.rows.dtype.isin({POINTER_TABLE})]] = True
        return mask

    def temporary_blocks(self) -> I64:
        """Return the temporary rows that have memory and a lifetime, by region."""
        rows = self.rows
        blocks = np.flatnonzero(self.temporary & (rows.charge > 0) & (rows.end > rows.start))
        return blocks[np.argsort(rows.region[blocks], kind="stable")]


def live_buffers(tables: ProgramTables, position: int) -> Json:
    """Return the buffers at a position: those of the whole program, then temporaries in order of allocation."""
    rows = tables.rows
    live = np.flatnonzero((rows.charge > 0) & rows.live_at(position))
    live = live[np.lexsort((live, rows.start[live], tables.temporary[live]))]
    charge = rows.charge[live]
    small = int(charge[charge < MIN_BUFFER_BYTES].sum())
    sizes = np.r_[charge[charge >= MIN_BUFFER_BYTES], [small] * (small > 0)]
    buffers = [_buffer(tables, row) for row in live[charge >= MIN_BUFFER_BYTES].tolist()]
    if small:
        label = f"small (<{MIN_BUFFER_BYTES} bytes)"
        buffers.append({"label": label, "logicalBufferId": -1, "logicalBufferSizeMib": small / MIB})
    buffers = [{"numbered": number, **buffer} for number, buffer in enumerate(buffers)]
    by_size = np.argsort(-sizes, kind="stable")
    return {
        "maxHeap": buffers,
        "maxHeapBySize": [buffers[number] for number in by_size.tolist()],
        "maxHeapToBySize": np.argsort(by_size).tolist(),
        "bySizeToMaxHeap": by_size.tolist(),
    }


def _buffer(tables: ProgramTables, row: int) -> Json:
    rows = tables.rows
    name, shape, scope = rows.name[row], rows.shape[row], rows.op_name[row]
    kind = int(tables.kind[row])
    return nonempty_fields(
        {
            "label": f"{split_name(name)[0]}: {shape} # {scope}",
            "logicalBufferId": int(rows.id[row]),
            "logicalBufferSizeMib": int(rows.charge[row]) / MIB,
            "unpaddedShapeMib": int(rows.requested[row]) / MIB,
            "instructionName": name,
            "shapeString": shape,
            "tfOpName": scope,
            "groupName": next((text for flag, text in CATEGORIES if kind & flag), "Temporary"),
            "opCode": rows.op[row],
            "sourceInfo": source_info(tables.recording, int(rows.stack[row])),
        }
    )


SCOPED_SPACE = 1  # VMEM, the only memory space with scoped allocations


def memory_viewer(recordings: list[Recording], memory_space: int) -> Json:
    """Return XProf's answer for one memory space of one program, given the program's recordings.

    For a memory space without allocations, the answer has only the program's names. Raises InputError where no
    recording is of a program.
    """
    programs = [(recording, recording.program) for recording in recordings if recording.program is not None]
    if not programs:
        raise InputError("No compiled program", "memory viewer", "choose a module that the run lists")
    first = programs[0][1]
    names = nonempty_fields({"moduleName": first.module, "entryComputationName": first.entry_computation})
    for recording, program in programs:
        if program.memory_space == memory_space:
            return {**names, **nonempty_fields(_fields(ProgramTables(recording, program)))}
    return names


def _fields(tables: ProgramTables) -> Json:
    recording, program, kinds = tables.recording, tables.program, tables.regions.kind
    curve, top = usage(recording), peak(recording)
    unpadded = int(curve.requested[top.position]) if len(curve.requested) else 0
    indefinite = tables.region_bytes(kinds != RegionKind.TEMPORARY) - tables.bytes_of(RegionKind.THREAD_LOCAL)
    scoped = program.scoped_bytes if program.memory_space == SCOPED_SPACE else 0
    return {
        "heapSizes": _series(tables, curve.live),
        "unpaddedHeapSizes": _series(tables, curve.requested),
        "hloInstructionNames": [*program.name.tolist(), ""],
        **live_buffers(tables, top.position),
        "logicalBufferSpans": buffer_spans(tables),
        "peakHeapMib": top.bytes / MIB,
        "peakUnpaddedHeapMib": unpadded / MIB,
        "peakHeapSizePosition": top.position,
        "entryComputationParametersMib": tables.bytes_of(RegionKind.PARAMETER) / MIB,
        "nonReusableMib": tables.region_bytes(tables.not_reusable()) / MIB,
        "maybeLiveOutMib": tables.bytes_of(RegionKind.OUTPUT) / MIB,
        "totalBufferAllocationMib": reserved_bytes(recording) / MIB,
        "indefiniteBufferAllocationMib": indefinite / MIB,
        "maxScopedVmemAllocationMib": scoped / MIB,
        "maxScopedVmemInstructionName": program.scoped_instruction if scoped else "",
        "indefiniteLifetimes": list(indefinite_lifetimes(tables)),
        "bufferBlocks": list(buffer_blocks(tables)),
    }


def _series(tables: ProgramTables, curve: I64) -> list[float]:
    """Return a series in MiB. Its first point, before the program starts, is the memory of the whole program."""
    persistent = int(tables.rows.charge[~tables.temporary].sum())
    series: list[float] = (np.r_[persistent, curve] / MIB).tolist()
    return series


ATTRIBUTES = (
    (RegionKind.PARAMETER, "entry computation parameter"),
    (RegionKind.OUTPUT, "may-be live out"),
)


def buffer_spans(tables: ProgramTables) -> dict[str, Json]:
    """Return per temporary buffer the point before which it is allocated, and the last point at which it is live."""
    which = tables.temporary_blocks()
    start, limit = np.maximum(tables.rows.start[which], 0).tolist(), tables.rows.end[which].tolist()
    ids = tables.rows.id[which].tolist()
    return {str(b): nonempty_fields({"start": s, "limit": e}) for b, s, e in zip(ids, start, limit, strict=True)}


def indefinite_lifetimes(tables: ProgramTables) -> Iterator[Json]:
    """Yield the allocations that last for the whole program, each with all its logical buffers."""
    rows = tables.rows
    which = np.flatnonzero(~tables.temporary & ((tables.kind & RegionKind.THREAD_LOCAL) == 0))
    which = which[np.argsort(rows.region[which], kind="stable")]
    reusable = ~tables.not_reusable()
    columns = (rows.region[which].tolist(), rows.id[which].tolist(), rows.size[which].tolist())
    members = zip(*columns, rows.name.take(which).tolist(), rows.shape.take(which).tolist(), strict=True)
    for region, group in groupby(members, key=itemgetter(0)):
        buffers = [_logical_buffer(*member[1:]) for member in group]
        attributes = [text for flag, text in ATTRIBUTES if int(tables.regions.kind[region]) & flag]
        shapes = {buffer.get("shape", "") for buffer in buffers}
        yield nonempty_fields(
            {
                "id": id_text(int(tables.regions.index[region])),
                "sizeMib": int(tables.regions.size[region]) / MIB,
                "attributes": [*attributes, "reusable"] if reusable[region] else attributes,
                "logicalBuffers": buffers,
                "commonShape": shapes.pop() if len(shapes) == 1 else "",
            }
        )


def buffer_blocks(tables: ProgramTables) -> Iterator[Json]:
    """Yield the temporary allocations, stacked by address, each followed by its buffers. Sizes are bytes."""
    which = tables.temporary_blocks()
    regions = tables.regions
    containers = np.flatnonzero(regions.kind == RegionKind.TEMPORARY)
    bounds = np.searchsorted(tables.rows.region[which], np.append(containers, len(regions))).tolist()
    base = 0
    for number, container in enumerate(containers.tolist()):
        size = int(regions.size[container])
        yield nonempty_fields(
            {
                "logicalBufferId": -1,
                "name": "Temporary",
                "offset": base,
                "size": size,
                "endStep": tables.recording.length,
                "category": "Temporary",
                "color": "#ffffff",
            }
        )
        yield from _blocks_in(tables, which[bounds[number] : bounds[number + 1]], base)
        base += size


def _blocks_in(tables: ProgramTables, which: I64, base: int) -> Iterator[Json]:
    rows = tables.rows
    sources = {leaf: source_info(tables.recording, leaf) for leaf in np.unique(rows.stack[which]).tolist()}
    columns: dict[str, Iterable[Any]] = {
        "logicalBufferId": rows.id[which].tolist(),
        "name": rows.name.take(which).tolist(),
        "offset": (rows.offset[which] + base).tolist(),
        "size": rows.size[which].tolist(),
        "startStep": np.maximum(rows.start[which], 0).tolist(),
        "endStep": rows.end[which].tolist(),
        "tfOpName": rows.op_name.take(which).tolist(),
        "category": ["Temporary"] * len(which),
        "sourceInfo": map(sources.__getitem__, rows.stack[which].tolist()),
        "shapeString": rows.shape.take(which).tolist(),
        "unpaddedSize": rows.requested[which].tolist(),
        # Hues near the golden angle from each other, so that neighbors differ.
        "color": [f"hsl({number * 137 % 360},60%,55%)" for number in range(len(which))],
    }
    for values in zip(*columns.values(), strict=True):
        yield nonempty_fields(dict(zip(columns, values, strict=True)))


def _logical_buffer(buffer: int, size: int, name: str, shape: str) -> Json:
    instruction, index = split_name(name)
    fields = {"id": id_text(buffer), "shape": shape, "sizeMib": size / MIB, "hloName": instruction}
    return nonempty_fields({**fields, "shapeIndex": index})
