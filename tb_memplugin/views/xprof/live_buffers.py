"""The part of XProf's Memory Viewer answer about the buffers that are live at the peak."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.views.xprof.json_fields import MIB, Json, nonempty_fields, source_info, split_name
from tb_memplugin.views.xprof.program_tables import ProgramTables

MIN_BUFFER_BYTES = 16384  # XProf shows smaller buffers as one
CATEGORIES = (  # the first that applies
    (RegionKind.PARAMETER, "Parameter"),
    (RegionKind.OUTPUT, "Output"),
    (RegionKind.CONSTANT, "Constant"),
)


def live_buffers(tables: ProgramTables, position: int) -> Json:
    """Return the buffers at a position: those of the whole program, then temporaries in order of allocation."""
    rows = tables.rows
    live = np.flatnonzero((rows.charge > 0) & (rows.start <= position) & (position < rows.end))
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
    name, shape, scope = rows.name[row], rows.shape[row], rows.scope[row]
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
