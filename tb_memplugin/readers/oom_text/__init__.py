"""Texts of out-of-memory errors, as people paste them and as logs keep them: one module per tool that writes one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tb_memplugin.errors import InputError
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.codes import CaveatCode
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.oom_text import merge
from tb_memplugin.readers.oom_text.clean import clean
from tb_memplugin.readers.oom_text.messages import (
    bfc,
    cuda,
    onnxruntime,
    rematerialization,
    torch,
    tpu_compile,
    tpu_limits,
    tpu_runtime,
    xla_gpu,
)
from tb_memplugin.readers.oom_text.messages import host as host_memory
from tb_memplugin.readers.oom_text.recordings import recordings

FORMATS = (tpu_compile, tpu_limits, tpu_runtime, xla_gpu, bfc, rematerialization, cuda, torch, onnxruntime, host_memory)

# An error is at the end of its log. This is a dump of 150,000 chunks, and takes seconds.
MAX_BYTES = 16 << 20


def open_oom_text(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the one part of a text; it contains a recording per out-of-memory error."""
    read = partial(read_oom_text, data, run=run, host=host, source=path)
    return [FilePart("out-of-memory error", RecordingKind.OUT_OF_MEMORY, path, len(data), read)]


def read_oom_text(
    data: bytes | memoryview, *, run: str = "", host: str = "", source: str = "", skipped: int = 0
) -> list[Recording]:
    """A recording per failure, the one that says most first. InputError where the text tells of none.

    Of a long text the end is read; `skipped` bytes of it were left out by the caller already.
    """
    text = clean(bytes(data[-MAX_BYTES:]).decode("utf-8", "replace"))
    # Most of a log tells of nothing, and a plain search for a few words is a hundred times as fast as the patterns.
    told = [form for form in FORMATS if any(mark in text for mark in form.MARKS)]
    failures = merge.most_telling_first(merge.merged(failure for form in told for failure in form.find(text)))
    if not failures:
        raise InputError(
            "No out-of-memory error in the text",
            source or "the text",
            "give the whole message, from its first line; of a program that only ended, its exit code is enough",
        )
    found = recordings(failures, run=run, host=host, source=source)
    skipped += max(len(data) - MAX_BYTES, 0)
    if not skipped:
        return found
    cut = Caveat(
        CaveatCode.ONLY_END_READ, "Of this long text only the end was read; the bytes are those before it", skipped
    )
    return [replace(recording, caveats=(*recording.caveats, cut)) for recording in found]
