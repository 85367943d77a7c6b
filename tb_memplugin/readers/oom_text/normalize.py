"""Pasted text without what terminals, loggers, clusters and authors add: colors, prefixes, quotation, line breaks.

A text is normalized once, before any pattern is tried. Its `squeezed` form has no white space at all, so that a message
is found wherever an author, a terminal or a screenshot's OCR breaks its lines, words and numbers.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, groupby

import numpy as np

from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.lazy import cached_property

# Colors and cursor movements; a copy often lacks the escape character and keeps the rest, `[36m`.
ESCAPES = re.compile(
    r"\x1b\[[0-9;?]{0,40}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b\n]{0,1000}(?:\x07|\x1b\\)|\[\d{1,3}(?:;\d{1,3}){0,5}m"
)

RAY = r"\((?:[^\s()]{1,80} ){0,2}pid=\d+(?:, ip=[^\s()]{1,60})?\) ?"  # vLLM's too
RANK = r"\[(?:rank|default)?\d{1,6}\]:? ?|\[\d{1,4},\d{1,6}\]<std(?:err|out)>: ?"  # torchrun, mpirun
LEVEL = r"(?:CRITICAL|ERROR|WARNING|INFO|DEBUG)"

# In the order in which they occur together.
PREFIXES = (
    r"(?:> ?){1,3}",  # a quotation
    r"\d{1,5}: (?=\S)",  # srun --label
    r"[\w.-]{1,60} {0,4}\| (?=\S)",  # docker compose
    r"\d{0,6}" + RAY,  # may follow a line number of a web page
    RANK,
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,12}(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?",  # Kubernetes
    rf"{LEVEL}:? \d\d-\d\d \d\d:\d\d:\d\d \[?[^\]\n]{{1,120}}\] ?",  # vLLM
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9} \[[VIWEF]:onnxruntime:[^\]\n]{0,200}\] ?",
    r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9}: )?[IWEF] \S{1,200}:\d{1,6}\] ?",  # TensorFlow
    r"[IWEF]\d{4} [\d:.]{8,30} {1,8}\d{1,10} [^\s\]]{1,200}:\d{1,6}\] ?",  # absl
    # A logger's time in brackets or with a level.
    rf"\[(?:\d{{4}}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d[.,\d]{{0,10}}\] ?(?:\S{{1,40}}/)?{LEVEL}?:? {{0,4}}",
    rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d[.,\d]{{0,10}} (?:[-|] )?{LEVEL}[ :|-]{{1,6}}",
)
# Each begins with the end of the line before: a pattern that begins with ^ is tried at every character.
PREFIX = re.compile(rf"\n[ \t]{{0,40}}(?:{'|'.join(PREFIXES)}){{0,4}}[ \t]*")
WORKER = re.compile(rf"\n[ \t>]{{0,40}}\d{{0,6}}({RAY}|{RANK})")
SPACED_POINT = re.compile(r"(?<=\d) \. (?=\d)")  # of a screenshot's OCR
TYPOGRAPHY = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # of a word processor
LINE_NUMBER = re.compile(r"(?m)^(\d{1,6})(?:[.:|)]|(?=[ \t]))[ \t]{0,8}")
BLANK_LINES = re.compile(r"\n{3,}")
# repr() of an error, or a log that keeps an error on one line.
ESCAPED_LINES = re.compile(r"\\n(?:\\n|\\t| {2}|Total |BufferAssignment|Peak buffers|\s*==)")

NUMBER = re.compile(r"\d+")
# Of the lines before an error: those that are shown, the characters of one, and those in which they are searched.
MAX_LINES_BEFORE, LINE_CHARS, SEARCHED_CHARS = 20, 200, 20_000


class NormalizedText:
    """A normalized text: colors, prefixes, quotation marks and indentation are removed, and lines end in `\\n` alone.

    The lines of several workers that write to one log are grouped by worker.
    """

    def __init__(self, original: str) -> None:
        text = ESCAPES.sub("", original.translate(TYPOGRAPHY)).replace("\\_", "_")
        if ESCAPED_LINES.search(text):
            text = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
        text = SPACED_POINT.sub(".", text)
        text = BLANK_LINES.sub("\n\n", text.replace("\r\n", "\n").replace("\r", "\n"))
        workers = _by_worker(text)
        texts = [_without_numbers(PREFIX.sub("\n", f"\n{lines}")[1:]) for lines in workers.values()]
        self.text = "\n".join(texts)
        self._workers = list(workers)
        self._ends = list(accumulate(len(text) + 1 for text in texts))

    def worker(self, at: int) -> str:
        """Return the name of the worker that wrote a place in the text, such as `rank3`; empty if it has none."""
        return self._workers[self._worker_number(at)].strip(" ()[]:")

    def _worker_number(self, at: int) -> int:
        return min(bisect_right(self._ends, at), len(self._workers) - 1)

    def lines_before(self, at: int) -> tuple[str, ...]:
        """Return the last lines of the same worker before the line of a place, the oldest first, and in short."""
        number, end = self._worker_number(at), self.text.rfind("\n", 0, at) + 1
        begin = self._ends[number - 1] if number else 0
        if end - begin > SEARCHED_CHARS:
            begin = self.text.find("\n", end - SEARCHED_CHARS, end) + 1 or end
        return tuple(_folded(self.text[begin:end].split("\n")))[-MAX_LINES_BEFORE:]

    @cached_property
    def squeezed(self) -> str:
        """Return the text without white space."""
        codes = np.frombuffer(self.text.encode("utf-32-le", "replace"), np.uint32)
        return codes[_printed(codes)].tobytes().decode("utf-32-le")

    @cached_property
    def places(self) -> I64:
        """Return the place in the text of each character of `squeezed`."""
        return np.flatnonzero(_printed(np.frombuffer(self.text.encode("utf-32-le", "replace"), np.uint32)))

    def place(self, squeezed: int) -> int:
        """Return the place in the text of a place in `squeezed`; its end for the end."""
        return int(self.places[squeezed]) if squeezed < len(self.places) else len(self.text)


def _folded(lines: list[str]) -> Iterator[str]:
    """Return the last of lines that follow each other and differ in their numbers alone, as those of steps do."""
    printable = ("".join(c if c.isprintable() else " " for c in line[:LINE_CHARS]).rstrip() for line in lines)
    for _, group in groupby(filter(None, printable), key=lambda line: NUMBER.sub("0", line)):
        *others, last = group
        yield f"{last} (and those before it, with other numbers)" if others else last  # a cut log has no count


def _without_numbers(text: str) -> str:
    """Remove the numbers of lines, where every line has one."""
    lines = [line for line in text.split("\n") if line]
    numbers = [int(found[1]) for line in lines if (found := LINE_NUMBER.match(line))]
    first = numbers[0] if numbers else 0
    numbered = len(lines) > 1 and numbers == list(range(first, first + len(lines)))
    return LINE_NUMBER.sub("", text) if numbered else text


def worker_of(line: str) -> str:
    """Return the prefix that names the worker of a line; empty without one."""
    found = WORKER.match(f"\n{line}")
    return found[1] if found else ""


def _printed(codes: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> Mask:
    printed: Mask = (codes > ord(" ")) & (codes != 0xA0)  # a web page's space, which does not break
    return printed


def _by_worker(text: str) -> dict[str, str]:
    """Return the lines of each worker, where several write to one log."""
    if len(set(WORKER.findall(f"\n{text}"))) < 2:
        return {"": text}
    lines: dict[str, list[str]] = {}
    for line in text.split("\n"):
        lines.setdefault(worker_of(line), []).append(line)
    return {worker: "\n".join(of_worker) for worker, of_worker in lines.items()}
