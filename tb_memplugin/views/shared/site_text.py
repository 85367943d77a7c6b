"""Names of allocation sites: the operation, and the Python line that caused the allocation where it is known."""

from __future__ import annotations

from tb_memplugin.analysis.ownership.frames import frame_text
from tb_memplugin.analysis.ownership.source_lines import LINE, base_name, source_frames, source_lines
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.shared.json_types import SiteJson


def source_text(recording: Recording, row: int) -> str:
    """Return the user's innermost Python frame, `layer (model.py:20)`, else a framework's; empty without frames."""
    leaf = int(recording.allocations.stack[row])
    frame = int(source_frames(recording)[leaf]) if 0 <= leaf < len(recording.stacks.parent) else -1
    return frame_text(recording.stacks, frame) if frame >= 0 else ""


def line_text(recording: Recording, row: int) -> str:
    """Return the line of a row without folders, `model.py:20`; else what site_text returns."""
    name = recording.allocations.name[row]
    line = source_lines(recording)[row] or (name if LINE.fullmatch(name) else "")
    return base_name(line) if line else site_text(recording, row)


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
