"""Names of allocation sites: the operation, and the Python line that caused the allocation where it is known."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.frames import frame_text, framework_frames, nearest_frames
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.shared.json_types import SiteJson


def source_text(recording: Recording, row: int) -> str:
    """Return the user's innermost Python frame, `layer (model.py:20)`, else a framework's; empty without frames."""
    leaf = int(recording.allocations.stack[row])
    frame = int(_source_frames(recording)[leaf]) if 0 <= leaf < len(recording.stacks.parent) else -1
    return frame_text(recording.stacks, frame) if frame >= 0 else ""


@memoize
def _source_frames(recording: Recording) -> I32:
    """Return per frame the innermost user frame, else the innermost Python frame, among itself and its callers."""
    stacks = recording.stacks
    own = nearest_frames(stacks, ~framework_frames(stacks))
    return np.where(own >= 0, own, nearest_frames(stacks, stacks.file.nonempty))


def site_text(recording: Recording, row: int) -> str:
    """Name the site of a row: `dot in layer (model.py:20)`, or the jitted function where no line is known."""
    rows = recording.allocations
    what = rows.name[row] or rows.op[row] or rows.scope[row]
    source = source_text(recording, row) or (rows.scope[row] if rows.scope[row] != what else "")
    return " in ".join(part for part in (what, source) if part) or "unnamed"


def site(recording: Recording, row: int) -> SiteJson:
    """Describe the site of a row for JSON; stack frames are innermost first."""
    rows = recording.allocations
    return {
        "row": row,
        "site": site_text(recording, row),
        "name": rows.name[row],
        "op": rows.op[row],
        "op_name": rows.scope[row],
        "shape": rows.shape[row],
        "dtype": rows.dtype[row],
        "size": int(rows.size[row]),
        "stack": [
            {"function": function, "file": file, "line": line}
            for function, file, line in recording.stacks.frames(int(rows.stack[row]))
        ],
    }
