"""Messages of ONNX Runtime's arena, with requested and available bytes; its dump is the BFC allocator's."""

import re
from collections.abc import Iterator

from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.readers.oom_text.failure import Failure, last_matches

MARKS = ("Available memory of", "requested buffer of size")
LINE = re.compile(
    r"Available memory of (?P<free>\d{1,19}) is smaller than requested bytes of (?P<wanted>\d{1,19})"
    r"|Failed to allocate memory for requested buffer of size (?P<size>\d{1,19})"
)
# Precedes LINE on the same line, with a few function names in between.
NODE = re.compile(r"running (\w{1,60}) node\. Name:'([^'\n]{0,200})'[^\n]{0,1000}\Z")
NODE_CHARS = 1300


def find(text: str) -> Iterator[Failure]:
    for match in last_matches(LINE, text):
        node = NODE.search(text[max(match.start() - NODE_CHARS, 0) : match.start()])
        asked = min(int(match["wanted"] or match["size"]), 2**63 - 1)
        free = min(int(match["free"]), 2**63 - 1) if match["free"] else None
        out_of_memory = OutOfMemory(
            asked=asked, free=free, largest_free=free, wanted_by=f"{node[1]} {node[2]}" if node else ""
        )
        yield Failure(match.start(), "onnxruntime", "ONNX Runtime arena", out_of_memory)
