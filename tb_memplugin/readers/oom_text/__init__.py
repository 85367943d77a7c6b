"""Out-of-memory messages in pasted texts and logs. `messages` declares each kind of message."""

from dataclasses import replace
from functools import partial

from tb_memplugin.errors import InputError
from tb_memplugin.formats import OOM_TEXT_BYTES
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.part import FilePart, Origin
from tb_memplugin.readers.oom_text.excerpts import excerpts_of
from tb_memplugin.readers.oom_text.messages import MESSAGES
from tb_memplugin.readers.oom_text.messages.serving import with_engine_advice
from tb_memplugin.readers.oom_text.normalize import NormalizedText
from tb_memplugin.readers.oom_text.recordings import merge, rank, recordings
from tb_memplugin.readers.oom_text.startup import with_ledger

MAX_BYTES = OOM_TEXT_BYTES
MAX_LINES = 400_000  # a dump of that many bytes has 200,000


def open_oom_text(
    data: bytes | memoryview, path: str, *, run: str = "", host: str = "", skipped: int = 0
) -> list[FilePart]:
    """Return the one part of a text, with a recording per out-of-memory error. `skipped`: the bytes before `data`."""
    read = partial(read_oom_text, data, run=run, host=host, source=path, skipped=skipped)
    return [FilePart("out-of-memory error", RecordingKind.OUT_OF_MEMORY, path, len(data) + skipped, read)]


def read_oom_text(
    data: bytes | memoryview, *, run: str = "", host: str = "", source: str = "", skipped: int = 0
) -> list[Recording]:
    """Read one recording per failure, the most informative first. Raises InputError where the text has no failure.

    Of a long text, the end is read, with excerpts of what is before it; `skipped` is the number of bytes that the
    caller left out before `data`.
    """
    end = b"\n".join(bytes(data[-MAX_BYTES:]).rsplit(b"\n", MAX_LINES)[-MAX_LINES:])
    before = excerpts_of(data[: len(data) - len(end)]) if len(data) > len(end) else b""
    normalized = NormalizedText(b"\n".join(filter(None, (before, end))).decode("utf-8", "replace"))
    failures = rank(merge(failure for message in MESSAGES if not message.vague for failure in message.find(normalized)))
    # Without figures, only the most specific words count: others say the same.
    failures = failures or next(filter(None, (merge(m.find(normalized)) for m in MESSAGES if m.vague)), [])
    failures = with_ledger(with_engine_advice(failures, normalized.text), normalized)
    if not failures:
        remedy = "paste the whole message from its first line; for a killed process, its exit code is enough"
        raise InputError("No out-of-memory error in the text", source or "the text", remedy)
    found = recordings(failures, normalized, Origin(run, host, source))
    skipped += len(data) - len(end) - len(before)
    if skipped <= 0:
        return found
    text = (
        "Of this long text, the end was read, and of what is before it, errors and start-up lines; the bytes are others"
    )
    cut = Caveat(CaveatCode.ONLY_END_READ, text, skipped)
    return [replace(recording, caveats=(*recording.caveats, cut)) for recording in found]
