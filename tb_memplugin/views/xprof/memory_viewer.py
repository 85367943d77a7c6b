"""XProf's own Memory Viewer answer, for its page and for scripts that read its JSON.

The schema is that of XProf 2.24: numbers are MiB unless a field name says bytes, empty fields are left out, and 64-bit
ids are strings. The axis is the program order instead of the events of one heap-simulator trace. Point i of a series
is the memory that is live before instruction i, so the series has one point more than the program has instructions,
and reaches the peak one point after `peakHeapSizePosition`, as XProf's page expects.
"""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.xprof.buffer_lifetimes import buffer_blocks, buffer_spans, indefinite_lifetimes
from tb_memplugin.views.xprof.json_fields import MIB, Json, column_texts, nonempty_fields
from tb_memplugin.views.xprof.live_buffers import live_buffers
from tb_memplugin.views.xprof.program_tables import ProgramTables

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
    unpadded = int(curve.unpadded[top.position]) if len(curve.unpadded) else 0
    indefinite = tables.region_bytes(kinds != RegionKind.TEMPORARY) - tables.bytes_of(RegionKind.THREAD_LOCAL)
    scoped = program.scoped_bytes if program.memory_space == SCOPED_SPACE else 0
    return {
        "heapSizes": _series(tables, curve.live),
        "unpaddedHeapSizes": _series(tables, curve.unpadded),
        "hloInstructionNames": [*column_texts(program.name), ""],
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
