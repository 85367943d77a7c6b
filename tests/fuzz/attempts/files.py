"""Attempts at one file: it is opened and read as the tool does, then endpoints of the page answer about it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO

from fuzz.attempts.queries import known_endpoints, queries

from tb_memplugin.analysis.usage.headroom import with_device_limits
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import encoded
from tb_memplugin.questions.asking.inputs import Call
from tb_memplugin.questions.explain import explain_text
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.export.formats import write_csv, write_json
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.readers import open_file

Attempt = Callable[[bytes, bool], bool]

MAX_RECORDINGS = 3  # that are asked about
ASKED_EVERY, EXPLAINED_EVERY = 8, 64  # inputs


@dataclass(frozen=True)
class FileAttempt:
    """Opens inputs as files of one name. Calls return whether anything could be read."""

    path: str

    def __call__(self, data: bytes, everything: bool) -> bool:
        recordings = self.read(data)
        # Chosen by the content, so that an input is tried in the same way each time.
        chance = zlib.crc32(data)
        for recording in recordings[:MAX_RECORDINGS]:
            if everything or chance % ASKED_EVERY == 0:
                ask(recording, recordings, None if everything else chance // ASKED_EVERY)
            if everything or chance % EXPLAINED_EVERY == 0:
                explained(recording, recordings)
        return bool(recordings)

    def read(self, data: bytes) -> list[Recording]:
        """Return the recordings; every error names the file."""
        found: list[Recording] = []
        try:
            for part in open_file(data, self.path, run="run", host="host"):
                try:
                    recordings = part.read()
                    for recording in recordings:
                        check_peak(recording)
                    if not recordings and part.no_events_reason is not None:
                        part.no_events_reason()
                    found += recordings
                except InputError as error:
                    self.check(error)
        except InputError as error:
            self.check(error)
        return with_device_limits(found)

    def check(self, error: InputError) -> None:
        assert self.path in str(error), f"the error does not name the file: {error}"
        assert error.what and error.remedy, f"the error lacks a part: {error!r}"


def check_peak(recording: Recording) -> None:
    live = usage(recording).live
    assert peak(recording).bytes == max(0, int(live.max(initial=0))), "the peak is not the largest sum"
    assert int(live.min(initial=0)) >= 0, "less than nothing is live"


def ask(recording: Recording, recordings: Sequence[Recording], choice: int | None) -> None:
    """Ask one endpoint about a recording, or all with several values of each parameter."""
    source = report_source(recordings, recordings)
    known = list(known_endpoints().values())
    for number, endpoint in enumerate(known):
        if endpoint.post or (choice is not None and number != choice % len(known)):
            continue
        for query in queries(endpoint, recording, choice):
            try:
                encoded(endpoint.answer(Call(query, source)))
            except InputError as error:
                assert error.what, f"the error lacks a part: {error!r}"


def explained(recording: Recording, recordings: Sequence[Recording]) -> None:
    """Make what the terminal and exported tables show."""
    try:
        for line in explain_text.lines(explain(recording, others=recordings)):
            line.encode("utf-8", "surrogateescape")
        write_csv([recording], BytesIO())
        write_json([recording], BytesIO())
    except InputError as error:
        assert error.what, f"the error lacks a part: {error!r}"
