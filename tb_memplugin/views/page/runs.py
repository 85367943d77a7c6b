"""Runs and their recordings, as lists to choose from."""

from __future__ import annotations

from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.views.endpoints.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.views.endpoints.inputs import RUN, SOURCE, Text
from tb_memplugin.views.endpoints.source import Source
from tb_memplugin.views.shared.summary import summary


@endpoint("runs", SOURCE, report=EACH_CHOICE)
def runs(source: Source) -> dict[str, Any]:
    """Return all runs; `message` says why there are none, since the page shows an empty logdir as such."""
    message = None
    try:
        found = source.runs()
    except InputError as error:
        found, message = [], str(error)
    listed = [{"name": run.name, "hosts": list(run.hosts)} for run in found]
    return {"logdir": source.logdir, "runs": listed, "message": message}


@endpoint("recordings", SOURCE, RUN, Text("host", ""), report=EACH_CHOICE)
def recordings(source: Source, run: str, host: str) -> dict[str, Any]:
    """Return the recordings of a run, or of one host of it, and what could not be read."""
    found = source.run(run, host or None)
    return {
        "recordings": [*map(summary, found.recordings)],
        "problems": [problem._asdict() for problem in found.problems],
        "empty": {host: dict(reason) for host, reason in found.empty.items()},
    }
