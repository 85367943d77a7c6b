"""How a site is named: by the Python line that asked for the memory where that is known, and what it asked for."""

from __future__ import annotations

from typing import Any

from tb_memplugin.analysis.frames import callers_first, frame_text
from tb_memplugin.recording import Recording


def source_text(recording: Recording, row: int) -> str:
    """The user's innermost Python frame, `layer (model.py:20)`, or a framework's; empty where there is none."""
    text = ""
    own = False
    for at in callers_first(recording.stacks, [int(recording.allocations.stack[row])]):
        if recording.stacks.file[at.frame] and (not at.framework or not own):
            text, own = frame_text(recording.stacks, at.frame), not at.framework
    return text


def site_text(recording: Recording, row: int) -> str:
    """`dot in layer (model.py:20)`, or in the jitted function where no line is known."""
    rows = recording.allocations
    what = rows.name[row] or rows.op[row] or rows.scope[row]
    source = source_text(recording, row) or (rows.scope[row] if rows.scope[row] != what else "")
    return " in ".join(part for part in (what, source) if part) or "unnamed"


def site(recording: Recording, row: int) -> dict[str, Any]:
    """What `row` says of its site, for JSON; stack frames innermost first."""
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
