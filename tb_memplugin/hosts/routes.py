"""What each route answers: a method per route, by its name, from one logdir's catalog."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug.wrappers import Request, Response

from tb_memplugin.analysis.ownership.classification import Classification
from tb_memplugin.catalog import Catalog
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.parameters import choice, integer, required
from tb_memplugin.hosts.responses import json_response, tables_response
from tb_memplugin.model.recording import Recording
from tb_memplugin.views.page import (
    advice,
    compare,
    device_profile,
    holes,
    leaks,
    memory_profile,
    memory_viewer,
    overview,
    runtime_to_program,
    tree,
)
from tb_memplugin.views.shared.oom import sentences
from tb_memplugin.views.shared.summary import summary

Route = Callable[[Request], Response]
PostedRoute = Callable[[Request, bytes], Response]  # with the body

MAX_DRAWN = 300  # functions in one picture of a call graph
MAX_BUCKETS = 8192  # twice the pixels of a wide screen; the page asks for one bucket per pixel


class Routes:
    """InputError where what is asked for is not there, BadParameter where it makes no sense."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def all(self) -> dict[str, Route]:
        """By path below the mount."""
        named: tuple[Route, ...] = (
            self.runs,
            self.recordings,
            self.memory_viewer,
            self.memory_profile,
            self.rows,
            self.usage,
            self.holes,
            self.joins,
            self.details,
            self.leaks,
            self.tree,
            self.advice,
            self.overview,
            self.device_profile,
            self.callgraph,
            self.growth,
            self.compare,
        )
        return {f"api/{route.__name__}": route for route in named}

    def posted(self) -> dict[str, PostedRoute]:
        """Those that are sent something."""
        return {"api/paste": self.paste}

    def paste(self, request: Request, text: bytes) -> Response:
        """The text of an error, as a run of its own from now on."""
        try:
            pasted = self._catalog.pasted.add(text)
        except InputError as error:  # a text of something else is a state of the page, not a failure of it
            return json_response({"recordings": [], "run": "", "explanation": [], "message": str(error)})
        found = pasted.recordings
        return json_response(
            {
                "recordings": [*map(summary, found)],
                "run": pasted.run.name,
                "explanation": sentences(found[0]),
                "message": None,
            }
        )

    def runs(self, request: Request) -> Response:
        message = None
        try:
            runs = self._catalog.runs()
        except InputError as error:  # an empty logdir is a state of the page, not a failure of it
            runs, message = [], str(error)
        listed = [{"name": run.name, "hosts": [file.host for file in run.files]} for run in runs]
        return json_response({"logdir": self._catalog.logdir, "runs": listed, "message": message})

    def recordings(self, request: Request) -> Response:
        listing = self._catalog.listing(required(request, "run"), request.args.get("host") or None)
        problems = [{"file": problem.file, "text": problem.text} for problem in listing.problems]
        empty = {host: reason._asdict() for host, reason in listing.silent.items()}
        return json_response({"recordings": [*map(summary, listing.recordings)], "problems": problems, "empty": empty})

    def memory_viewer(self, request: Request) -> Response:
        recording = self._catalog.recording(required(request, "id"))
        return tables_response(memory_viewer.first_view(recording))

    def memory_profile(self, request: Request) -> Response:
        recording = self._catalog.recording(required(request, "id"))
        return tables_response(memory_profile.first_view(recording))

    def rows(self, request: Request) -> Response:
        recording = self._catalog.recording(required(request, "id"))
        return tables_response(memory_viewer.rows(recording.complete))

    def usage(self, request: Request) -> Response:
        recording = self._catalog.recording(required(request, "id"))
        start = integer(request, "from", -1, recording.length, default=0)
        end = integer(request, "to", start, recording.length, default=recording.length)
        buckets = integer(request, "buckets", 1, MAX_BUCKETS, default=1024)
        view = memory_viewer if recording.clock is None else memory_profile
        return tables_response(view.usage(recording, start, end, buckets))

    def joins(self, request: Request) -> Response:
        """What the programs of the same file account for, and which of them run at a position."""
        recording_id = required(request, "id")
        recording = self._catalog.recording(recording_id).complete
        at = integer(request, "at", -1, max(recording.length - 1, 0))
        programs = [beside for beside in self._catalog.beside(recording_id) if beside.kind.has_program]
        return json_response(runtime_to_program.joins(recording, programs, at))

    def holes(self, request: Request) -> Response:
        """The free pieces of memory at a position, -1 is before the first."""
        recording = self._catalog.recording(required(request, "id"))
        at = integer(request, "at", -1, max(recording.length - 1, 0))
        return json_response(holes.holes(recording, at))

    def details(self, request: Request) -> Response:
        recording_id = required(request, "id")
        recording = self._catalog.recording(recording_id).complete
        row = integer(request, "row", 0, len(recording.allocations) - 1)
        details = memory_viewer.details(recording, row)
        if recording.kind.runs_programs:
            programs = [beside for beside in self._catalog.beside(recording_id) if beside.kind.has_program]
            details["planned"] = memory_profile.planned(recording, row, programs)
        return json_response(details)

    def leaks(self, request: Request) -> Response:
        return json_response(leaks.findings(self._catalog.recording(required(request, "id")).complete))

    def tree(self, request: Request) -> Response:
        recording = self._catalog.recording(required(request, "id"))
        merge = integer(request, "merge", 0, 1, default=0)
        return tables_response(tree.tree(recording.complete, choice(request, "by", Classification), bool(merge)))

    def advice(self, request: Request) -> Response:
        return json_response(advice.advice(self._catalog.recording(required(request, "id"))))

    def overview(self, request: Request) -> Response:
        listing = self._catalog.listing(required(request, "run"))
        return json_response(overview.overview(listing.recordings))

    def device_profile(self, request: Request) -> Response:
        recording_id = required(request, "id")
        recording = self._catalog.recording(recording_id)
        return json_response(device_profile.device_profile(recording, self._catalog.beside(recording_id)))

    def callgraph(self, request: Request) -> Response:
        """Of one device, or with `whole=1` of all in its file; as the change since another file's with `base`."""
        whole = bool(integer(request, "whole", 0, 1, default=0))
        base = request.args.get("base")
        refine = device_profile.Refine(
            focus=request.args.get("focus", ""),
            ignore=request.args.get("ignore", ""),
            hide=request.args.get("hide", ""),
            fold=bool(integer(request, "fold", 0, 1, default=1)),
        )
        return json_response(
            device_profile.call_graph(
                self._profiles(required(request, "id"), whole),
                self._profiles(base, whole) if base else None,
                choice(request, "by", device_profile.Granularity),
                refine,
                integer(request, "most", 1, MAX_DRAWN, default=60),
            )
        )

    def _profiles(self, recording_id: str, whole: bool) -> list[Recording]:
        if not whole:
            return [self._catalog.recording(recording_id)]
        beside = self._catalog.beside(recording_id)
        return [recording for recording in beside if recording.kind.has_call_graph]

    def growth(self, request: Request) -> Response:
        """Over the device profiles of its run that are of one series with this one."""
        recording = self._catalog.recording(required(request, "id"))
        listing = self._catalog.listing(recording.run)
        return json_response(device_profile.series(recording, listing.recordings))

    def compare(self, request: Request) -> Response:
        """At the peaks, or at positions `at_a` and `at_b`."""
        a, b = (self._catalog.recording(required(request, name)) for name in ("a", "b"))
        at_a, at_b = (
            integer(request, name, -1, recording.length - 1) if request.args.get(name) else None
            for name, recording in (("at_a", a), ("at_b", b))
        )
        return json_response(compare.compared(a, b, at_a, at_b, choice(request, "by", compare.CompareBy)))
