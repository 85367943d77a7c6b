"""Reports to download: what `tb-memplugin export` writes for one run, sent piece by piece while it is made."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator

from werkzeug.wrappers import Request, Response

from tb_memplugin.errors import InputError
from tb_memplugin.hosts import report
from tb_memplugin.hosts.http_messages import NotAccepted, sent_by_another_site
from tb_memplugin.questions.asking.inputs import RUN, Call
from tb_memplugin.questions.asking.source import Source
from tb_memplugin.questions.export.rows import exportable

PATH = "api/report"
MAX_AT_ONCE = 2  # each takes a processor while it is made
# The first recording is in a report whatever its size: 100,000 rows take 8 MB.
MAX_ROWS = 1_000_000
MAX_NAME = 80
# No browser shows it in place of the page: it is saved. If one did, its scripts would not run in our origin.
HEADERS = {"Content-Security-Policy": "sandbox; default-src 'none'"}


class ReportDownload:
    """The route of reports, for one source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._slots = threading.BoundedSemaphore(MAX_AT_ONCE)

    def response(self, request: Request) -> Response:
        """Return the report of the run that a request names. InputError or NotAccepted where there is none."""
        # "none" is a URL that a user typed. A page of another site could start any number of them.
        if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise sent_by_another_site(request)
        run = RUN.read(Call(request.args.to_dict(), self._source), ())
        if not self._slots.acquire(blocking=False):
            raise NotAccepted(503, "Other reports are being written", run, "try again when they are complete")
        body = _Started(self._pieces(run))
        response = Response(body, content_type="text/html; charset=utf-8", headers=HEADERS)
        response.headers["Content-Disposition"] = f'attachment; filename="{file_name(run)}"'
        return response

    def _pieces(self, run: str) -> Generator[bytes]:
        """Yield the report, and give its slot back at the end, also where the client leaves before."""
        try:
            every = self._source.runs.run(run).recordings
            selected, _ = exportable(every)
            if not selected:
                raise InputError("No recordings to export", run, "choose another run")
            if len(selected[0].allocations) > MAX_ROWS:
                count = f"{len(selected[0].allocations):,} allocations"
                raise NotAccepted(413, "The report is too large to send", count, "write it with tb-memplugin export")
            title = f"Memory report of {run}"
            yield from report.Report(title, selected, every, report.MAX_BYTES, self._source.runs.fit()).pieces()
        finally:
            self._slots.release()


class _Started:
    """Pieces of which the first one is made at once, so that an error before it has a status."""

    def __init__(self, pieces: Generator[bytes]) -> None:
        self._pieces = pieces
        self._first = next(pieces)

    def __iter__(self) -> Iterator[bytes]:
        yield self._first
        yield from self._pieces

    def close(self) -> None:
        self._pieces.close()


def file_name(run: str) -> str:
    """Return a file name for the report of a run, in ASCII."""
    return f"memory-report-{re.sub(r'[^A-Za-z0-9.-]+', '_', run)[:MAX_NAME].strip('._')}.html".replace("-.", ".")
