"""Answers to XProf's own requests, from our recordings: its two memory tools, and its lists of runs and hosts.

The parameters are XProf's: `run`, or `session_path` (the folder of one run), or `run_path` (a folder of runs)
with `run`; `host`; `module_name`, or `program_id`; `memory_space`. `use_saved_result` is ignored: nothing is saved.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response

from tb_memplugin import logdir
from tb_memplugin.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.responses import json_response
from tb_memplugin.logdir import Run
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.xprof import memory_profile, memory_viewer

Parameters = MultiDict[str, str]

# XProf lists a run's tools in a file that it writes next to the profile. It lists none where it cannot write, or where
# the first host's file is damaged. The tools below open without that file.
TOOLS = (
    "overview_page",
    "trace_viewer",
    "op_profile",
    "input_pipeline_analyzer",
    "kernel_stats",
    "memory_profile",
    "memory_viewer",
    "roofline_model",
    "framework_op_stats",
    "hlo_stats",
)


class Elsewhere(Exception):
    """A request that only XProf can answer: for a folder outside the logdir, or without files that we can read."""


class Answers:
    """Answers about the runs of one logdir. InputError for an unknown run, host or module."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def listed(self, route: str, parameters: Parameters) -> Response:
        """Answer /runs, /run_tools, /hosts and /module_list in XProf's format."""
        if route == "/runs":
            # A pasted text has no profile, so XProf's tools cannot open it.
            return json_response([run.name for run in self._catalog.runs() if run.folder])
        run = self._run(parameters)
        if route == "/run_tools":
            return json_response(TOOLS)
        if route == "/hosts":
            return json_response([{"hostname": file.host} for file in run.files if file.path.endswith(".pb")])
        programs = self._programs(run)
        return Response(",".join(sorted({program.title for program in programs})), content_type="text/plain")

    def memory_viewer(self, parameters: Parameters) -> Response:
        """Answer `/data?tag=memory_viewer` in XProf's JSON."""
        run = self._run(parameters)
        module = self._module(run, parameters)
        return json_response(memory_viewer.memory_viewer(module, memory_space(parameters)))

    def memory_profile(self, parameters: Parameters) -> Response:
        """Answer `/data?tag=memory_profile` in XProf's JSON, for the requested host or that with the largest peak."""
        host = parameters.get("host")
        listing = self._catalog.listing_of_run(self._run(parameters), None if host in (None, "", "ALL_HOSTS") else host)
        allocators = [recording for recording in listing.recordings if recording.kind.runs_programs]
        if not allocators and listing.problems:
            raise Elsewhere
        of_host = [recording for recording in allocators if recording.host == allocators[0].host]
        return json_response(memory_profile.memory_profile(of_host))

    def timeline(self, parameters: Parameters) -> str:
        """Return the URL of XProf's page with our timeline, for XProf's timeline link, relative to `/data`."""
        run = self._run(parameters)
        host, module = parameters.get("host"), parameters.get("module_name")
        if not module and parameters.get("program_id"):
            module = self._module(run, parameters)[0].title
        # XProf needs the path to find the run again.
        folder = {name: parameters.get(name) for name in ("session_path", "run_path")}
        page = {"tag": "memory_viewer", "run": run.name, "host": host, "moduleName": module, **folder}
        place = {"tab": "memory_viewer", "run": run.name, "host": host, "module": module}
        state = {**place, "space": str(memory_space(parameters)), "full": "true"}
        return f"./?{_query(page)}#{_query(state)}"

    def _run(self, parameters: Parameters) -> Run:
        name = parameters.get("run", "")
        session, parent = parameters.get("session_path"), parameters.get("run_path")
        if session or parent:
            path = session or os.path.join(str(parent), name)
            if os.pardir in path.split("/"):
                raise InputError("Not a plain path", path, "name the folder without `..`")
            remote = logdir.is_remote(path)
            folder = path.partition("://")[2].rstrip("/") if remote else os.path.realpath(path)
            try:
                found = self._catalog.find(lambda run: run.folder == folder)
            except InputError:  # no logdir, or nothing in it
                found = []
            if not found:
                raise Elsewhere
        elif not (found := self._catalog.find(lambda run: run.name == name)):
            raise InputError("Unknown run", name, "choose one that /runs lists")
        return found[0]

    def _programs(self, run: Run, host: str | None = None) -> list[Recording]:
        recordings = self._catalog.listing_of_run(run, host).recordings
        return [recording for recording in recordings if recording.program is not None]

    def _module(self, run: Run, parameters: Parameters) -> list[Recording]:
        """Return one program's recordings, one per memory space, of the requested host or the largest."""
        name, number = parameters.get("module_name"), parameters.get("program_id")
        requested = parameters.get("host")
        for host in (None,) if requested in (None, "", "ALL_HOSTS") else (requested, None):
            for program in self._programs(run, host):
                if program.title == name if name else program.title.endswith(f"({number})"):
                    same = self._programs(run, program.host)
                    return [recording for recording in same if recording.title == program.title]
        raise InputError("Unknown module", name or number or "(none)", "choose one that /module_list lists")


def _query(values: Mapping[str, str | None]) -> str:
    return urlencode({name: value for name, value in values.items() if value}, quote_via=quote)


def memory_space(parameters: Parameters) -> int:
    """Return the buffer color, or 0 if it is not a number, as XProf does."""
    try:
        return int(parameters.get("memory_space", "0"))
    except ValueError:
        return 0
