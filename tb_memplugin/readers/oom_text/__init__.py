"""Out-of-memory messages in pasted texts and logs.

`messages` has a module for each tool that writes them. Text that terminals, loggers and clusters add to their lines is
removed here.
"""

import re
from dataclasses import replace
from functools import partial

from tb_memplugin.errors import InputError
from tb_memplugin.formats import OOM_TEXT_BYTES
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.oom_text.messages import (
    bfc,
    cuda,
    onnxruntime,
    torch,
    tpu_compile,
    tpu_limits,
    xla_gpu,
)
from tb_memplugin.readers.oom_text.messages import host as host_memory
from tb_memplugin.readers.oom_text.recordings import merge, rank, recordings

MESSAGE_FORMATS = (
    tpu_compile,
    tpu_limits,
    xla_gpu,
    bfc,
    cuda,
    torch,
    onnxruntime,
    host_memory,
)

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

    Only the end of a long text is read; `skipped` is the number of bytes that the caller left out before it.
    """
    end = b"\n".join(bytes(data[-MAX_BYTES:]).rsplit(b"\n", MAX_LINES)[-MAX_LINES:])
    text = clean(end.decode("utf-8", "replace"))
    # Searching for a few fixed words is a hundred times as fast as matching the patterns, and most logs have none.
    formats = [form for form in MESSAGE_FORMATS if any(mark in text for mark in form.MARKS)]
    failures = rank(merge(failure for form in formats for failure in form.find(text)))
    if not failures:
        remedy = "paste the whole message from its first line; for a killed process, its exit code is enough"
        raise InputError("No out-of-memory error in the text", source or "the text", remedy)
    found = recordings(failures, run=run, host=host, source=source)
    skipped += len(data) - len(end)
    if not skipped:
        return found
    text = "Only the end of this long text was read; the bytes are those skipped"
    cut = Caveat(CaveatCode.ONLY_END_READ, text, skipped)
    return [replace(recording, caveats=(*recording.caveats, cut)) for recording in found]


# Colors and cursor movements; a copy often lacks the escape character and keeps the rest, `[36m`.
ESCAPES = re.compile(
    r"\x1b\[[0-9;?]{0,40}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b\n]{0,1000}(?:\x07|\x1b\\)|\[\d{1,3}(?:;\d{1,3}){0,5}m"
)

RAY = r"\((?:[^\s()]{1,80} ){0,2}pid=\d+(?:, ip=[^\s()]{1,60})?\) ?"  # vLLM's too
RANK = r"\[rank\d{1,6}\]:? ?"  # torchrun

# In the order in which they occur together.
PREFIXES = (
    r"(?:> ?){1,3}",  # a quotation
    r"\d{1,5}: (?=\S)",  # srun --label
    r"\d{0,6}" + RAY,  # may follow a line number of a web page
    RANK,
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,12}(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?",  # Kubernetes
    r"(?:CRITICAL|ERROR|WARNING|INFO|DEBUG):? \d\d-\d\d \d\d:\d\d:\d\d \[[^\]\n]{1,120}\] ?",  # vLLM
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9} \[[VIWEF]:onnxruntime:[^\]\n]{0,200}\] ?",
    r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9}: )?[IWEF] \S{1,200}:\d{1,6}\] ?",  # TensorFlow
    r"[IWEF]\d{4} [\d:.]{8,30} {1,8}\d{1,10} [^\s\]]{1,200}:\d{1,6}\] ?",  # absl
)
# Each begins with the end of the line before: a pattern that begins with ^ is tried at every character.
PREFIX = re.compile(rf"\n[ \t]{{0,40}}(?:{'|'.join(PREFIXES)}){{0,4}}[ \t]*")
WORKER = re.compile(rf"\n[ \t>]{{0,40}}\d{{0,6}}({RAY}|{RANK})")
BLANK_LINES = re.compile(r"\n{3,}")
# repr() of an error, or a log that keeps an error on one line.
ESCAPED_LINES = re.compile(r"\\n(?:\\n|\\t| {2}|Total |BufferAssignment|Peak buffers|\s*==)")


def clean(text: str) -> str:
    """Remove colors, prefixes, quotation marks and indentation; lines end in `\\n` alone.

    The lines of several workers that write to one log are grouped by worker.
    """
    text = ESCAPES.sub("", text)
    if ESCAPED_LINES.search(text):
        text = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    text = BLANK_LINES.sub("\n\n", text.replace("\r\n", "\n").replace("\r", "\n"))
    return PREFIX.sub("\n", f"\n{_group_by_worker(text)}")[1:]


def _group_by_worker(text: str) -> str:
    """Group the lines of each worker, where several write to one log."""
    if len(set(WORKER.findall(f"\n{text}"))) < 2:
        return text
    lines: dict[str, list[str]] = {}
    for line in text.split("\n"):
        worker = WORKER.match(f"\n{line}")
        lines.setdefault(worker[1] if worker else "", []).append(line)
    return "\n".join(line for of_worker in lines.values() for line in of_worker)
