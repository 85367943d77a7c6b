"""The progress of reading a run's files."""

from __future__ import annotations

from typing import TypedDict

from tb_memplugin.views.endpoints.endpoint import endpoint
from tb_memplugin.views.endpoints.inputs import RUN, SOURCE
from tb_memplugin.views.endpoints.source import Source


class ProgressJson(TypedDict):
    """Bytes read of all files of a run, and the seconds since the reading began; all 0 unless files are being read."""

    read_bytes: int
    total_bytes: int
    seconds: float


@endpoint("progress", SOURCE, RUN, live=True)
def progress(source: Source, run: str) -> ProgressJson:
    """Return how many bytes of a run's files are read. Answered at once, while other requests wait for the files."""
    read, total, seconds = source.progress(run)
    return {"read_bytes": read, "total_bytes": total, "seconds": seconds}
