"""Names of allocation sites, and sentences about the site that has most or leaks fastest."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.leaks.over_steps import Leaks
from tb_memplugin.analysis.ownership.source_lines import (
    LINE,
    base_name,
    frame_text,
    heaviest_line,
    source_frames,
    source_lines,
)
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.json_types import SiteJson, StackFrameJson
from tb_memplugin.sizes import agree, bytes_text, counted


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
    what = rows.name[row] or rows.op[row] or rows.op_name[row]
    source = source_text(recording, row) or (rows.op_name[row] if rows.op_name[row] != what else "")
    return " in ".join(part for part in (what, source) if part) or "unnamed"


def site(recording: Recording, row: int) -> SiteJson:
    """Describe the site of a row for JSON; stack frames are innermost first."""
    rows = recording.allocations
    return {
        "row": row,
        "site": site_text(recording, row),
        "name": rows.name[row],
        "op": rows.op[row],
        "op_name": rows.op_name[row],
        "shape": rows.shape[row],
        "dtype": rows.dtype[row],
        "size": int(rows.size[row]),
        "source": source_lines(recording)[row],
        "stack": stack_frames(recording, int(rows.stack[row])),
    }


def stack_frames(recording: Recording, leaf: int) -> list[StackFrameJson]:
    """Return the frames of a call stack, innermost first."""
    frames = recording.stacks.frames(leaf)
    return [{"function": function, "file": file, "line": line} for function, file, line in frames]


MIN_SHARE = 0.01  # of the peak; a line with less is not worth naming
MIN_CONFIDENCE = 0.5  # of a leak; below, it is a possible one


def most_from(recording: Recording) -> str:
    """Return "Most from train.py:86, 204 MiB." for the line with the most bytes at the peak; empty if unknown."""
    most = heaviest_line(recording)
    if most is None or most.bytes < max(MIN_SHARE * peak(recording).bytes, 1):
        return ""
    return f"Most from {most.line}, {bytes_text(most.bytes)}."


def leaking(found: Leaks, line_of_site: Sequence[str]) -> str:
    """Return "Leak: train.py:61 grows 2.00 MiB per step." for the line that leaks fastest; empty without a leak.

    `line_of_site` has the name of the line of each of the first sites of `found`.
    """
    sites = found.sites
    if sites is None:
        return ""
    growth = defaultdict[str, list[float]](lambda: [0.0, 0.0])  # of sites of one size, and of all sizes together
    sure = defaultdict[str, float](float)
    for i in np.flatnonzero(sites.verdict[: len(line_of_site)] == Verdict.LEAK).tolist():
        growth[line_of_site[i]][int(not sites.sized[i])] += float(sites.bytes_per_step[i])
        sure[line_of_site[i]] = max(sure[line_of_site[i]], float(sites.confidence[i]))
    if not growth:
        return ""
    line = max(growth, key=lambda name: max(growth[name]))
    word = "Leak" if sure[line] >= MIN_CONFIDENCE else "Possible leak"
    others = f" So {agree(len(growth) - 1, 'does', 'do')} {counted(len(growth) - 1, 'other line')}."
    rate = bytes_text(round(max(growth[line])))
    return f"{word}: {line} grows {rate} per {found.steps.unit}.{others if len(growth) > 1 else ''}"
