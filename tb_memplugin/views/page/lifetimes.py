"""Lifetimes and sizes of the allocations of a recording over time, for the first picture of a timeline."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import unexplained_bytes
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.endpoints.endpoint import NOT_IN_REPORTS, endpoint
from tb_memplugin.views.endpoints.inputs import OUTLINE
from tb_memplugin.views.shared.payload import Column, Table, encode, narrow


@endpoint("lifetimes", OUTLINE, report=NOT_IN_REPORTS)
def lifetimes(recording: Recording) -> bytes:
    """Return the sizes, lifetimes and roles of the rows of api/rows, and the `unexplained` bytes at each position.

    Making and sending api/rows takes ten times as long. Columns with their usual values are left out.
    """
    rows = recording.allocations
    columns: dict[str, Column] = {
        "role": roles(recording),
        "charge": rows.charge,
        "start": narrow(rows.start),
        "end": narrow(rows.end),
    }
    if not np.array_equal(rows.size, rows.charge):
        columns["size"] = rows.size
    if not np.array_equal(rows.defined, rows.start):
        columns["defined"] = narrow(rows.defined)
    if not np.array_equal(rows.last_used, rows.end - 1):
        columns["last_used"] = narrow(rows.last_used)
    unexplained = _stretches(unexplained_bytes(recording))
    return encode({"positions": recording.length}, {"rows": columns, "unexplained": unexplained})


def _stretches(values: I64) -> Table:
    """Return the stretches start <= position < end of one value that is not zero."""
    bounds = np.r_[0, np.flatnonzero(np.diff(values)) + 1, len(values)] if len(values) else np.zeros(1, dtype=np.int64)
    start, end = bounds[:-1], bounds[1:]
    kept = values[start] != 0
    return {"start": narrow(start[kept]), "end": narrow(end[kept]), "bytes": values[start[kept]]}
