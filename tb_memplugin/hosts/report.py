"""An offline report: the page and all answers that it needs in one HTML file, written to disk or sent as a download.

The page's files and the answers are base64, in elements that browsers do not run, so names in a profile are never part
of the markup. The policy allows only the page's own script, by its hash, and loads nothing from elsewhere.
"""

from __future__ import annotations

import gzip
import html
import json
import re
import threading
from base64 import b64encode
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain

from werkzeug.wrappers import Request, Response

from tb_memplugin.errors import InputError, log_failure
from tb_memplugin.hosts.http_messages import NotAccepted, sent_by_another_site
from tb_memplugin.hosts.static import FOLDER
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.inputs import RUN, Call
from tb_memplugin.questions.asking.source import NO_CANDIDATES, FitOutcomes, Source
from tb_memplugin.questions.export.formats import exportable
from tb_memplugin.questions.export.report import StoredAnswer, answers_of_recording, answers_of_runs, report_source

# Mail servers accept about 25 MB. A program of 100,000 buffers takes 8 MB.
MAX_BYTES = 20 << 20
SCRIPT = "index.js"
LICENSES = "licenses.txt"
GZIP_LEVEL = 4  # a tenth of the time of the highest, for 3% more bytes

# Workers, the style sheet and saved pictures are blobs that the script makes from the document.
POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; worker-src blob:; style-src blob:; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
HEAD = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="{policy}" />
    <meta name="viewport" content="width=device-width" />
    <meta name="color-scheme" content="light dark" />
    <link rel="icon" href="data:," />
    <title>{title}</title>
  </head>
  <body>
    <p data-unread>
      Reading this report. If this message stays, the file is incomplete, JavaScript is off, or the browser is
      older than 2023.
    </p>
"""
TAIL = "  </body>\n</html>\n"


@dataclass
class Report:
    """A report of `recordings`, in order, until it has `most` bytes; `every` is the list they are chosen from.

    All `candidates` of fits are in it, those without their program too.
    """

    title: str
    recordings: Sequence[Recording]
    every: Sequence[Recording]
    most: int
    candidates: FitOutcomes = NO_CANDIDATES
    contained: list[Recording] = field(default_factory=list)  # so far, as the following
    size: int = 0  # bytes
    numbers: dict[str, int] = field(default_factory=dict)  # of the elements with the answers, by key

    def pieces(self) -> Iterator[bytes]:
        """Yield the document. InputError before its first piece where the page has not been built."""
        for piece in self._elements():
            self.size += len(piece)
            yield piece

    def _elements(self) -> Iterator[bytes]:
        script, source = _script(), report_source(self.contained, self.every, self.candidates)
        policy = POLICY.format(script=b64encode(sha256(script).digest()).decode())
        yield HEAD.format(policy=policy, title=html.escape(self.title)).encode("utf-8", "replace")
        yield b'    <script type="module">' + script + b"</script>\n"
        yield b'    <script type="text/plain" data-licenses>\n' + licenses() + b"</script>\n"
        for path in sorted((FOLDER / "assets").iterdir()):
            yield _block(f'data-file="{html.escape(path.name)}"', path.read_bytes())
        for recording in self.recordings:
            if self.size >= self.most and self.contained:
                break
            self.contained.append(recording)
            for answer in answers_of_recording(recording, source):
                yield from self._answer(answer)
        for answer in answers_of_runs(source):
            yield from self._answer(answer)
        axes = sorted({recording.axis.value for recording in self.contained})
        counts = {"recordings": len(self.contained), "of": len(self.every)}
        yield _packed("data-report", json.dumps({**counts, "axes": axes, "answers": self.numbers}).encode())
        yield TAIL.encode()

    def _answer(self, stored: StoredAnswer) -> Iterator[bytes]:
        """Yield an answer. One that fails is left out, and the page says so where it is needed."""
        try:
            content = stored.content()
        except Exception as error:
            log_failure("Answering %s: %s", stored.key, error, error=error)
            return
        self.numbers[stored.key] = len(self.numbers)
        yield _packed("data-answer", content)


def _packed(attribute: str, content: bytes) -> bytes:
    return _block(attribute, gzip.compress(content, GZIP_LEVEL, mtime=0))


def _block(attribute: str, content: bytes) -> bytes:
    return f'    <script type="text/plain" {attribute}>'.encode() + b64encode(content) + b"</script>\n"


def licenses() -> bytes:
    """Return the licenses of the packages in the page, as text that can be read in the report's source."""
    try:
        return (FOLDER / LICENSES).read_bytes().replace(b"<", b"&lt;")
    except OSError:  # a page of an earlier build has no such file
        return b""


def _script() -> bytes:
    """Return the page's code without text that would end its element, which occurs only inside strings."""
    try:
        code = (FOLDER / SCRIPT).read_bytes()
    except OSError as error:
        remedy = "run pip install . in tb-memplugin's folder; it needs Node.js 20"
        raise InputError("The page has not been built", str(FOLDER), remedy) from error
    return re.sub(rb"<(?=/script|!--)", rb"\\x3c", code, flags=re.IGNORECASE)


DOWNLOAD_PATH = "api/report"
MAX_AT_ONCE = 2  # each takes a processor while it is made
# The first recording is in a report whatever its size: 100,000 rows take 8 MB.
MAX_ROWS = 1_000_000
MAX_NAME = 80
# Browsers save the report. If one showed it instead, the sandbox would keep its scripts out of the page's origin.
HEADERS = {"Content-Security-Policy": "sandbox; default-src 'none'"}


class ReportDownload:
    """The route of reports, for one source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._slots = threading.BoundedSemaphore(MAX_AT_ONCE)

    def response(self, request: Request) -> Response:
        """Return the report of the run that a request names. InputError or NotAccepted where there is none."""
        # A page of another site could start any number of reports. "none" is a URL that a user typed.
        if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise sent_by_another_site(request)
        run = RUN.read(Call(request.args.to_dict(), self._source), ())
        if not self._slots.acquire(blocking=False):
            raise NotAccepted(503, "Other reports are being written", run, "try again when they are complete")
        pieces = self._pieces(run)
        # The first piece is made at once, so that an error before it is answered with its status.
        body = chain([next(pieces)], pieces)
        response = Response(body, content_type="text/html; charset=utf-8", headers=HEADERS)
        response.call_on_close(pieces.close)
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
            yield from Report(title, selected, every, MAX_BYTES, self._source.runs.fit()).pieces()
        finally:
            self._slots.release()


def file_name(run: str) -> str:
    """Return a file name for the report of a run, in ASCII."""
    return f"memory-report-{re.sub(r'[^A-Za-z0-9.-]+', '_', run)[:MAX_NAME].strip('._')}.html".replace("-.", ".")
