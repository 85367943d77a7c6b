"""Removal of what terminals, loggers and clusters add to a tool's lines."""

from __future__ import annotations

import re

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
