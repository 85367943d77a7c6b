"""Lines of code around stack frames, of files below the logdir or a source root."""

import json
from typing import TypedDict

from tb_memplugin.questions.asking.endpoint import endpoint
from tb_memplugin.questions.asking.inputs import CODE, BadParameter, FreeText
from tb_memplugin.questions.asking.source import SourceCode
from tb_memplugin.questions.records import record

MAX_FRAMES = 64
MAX_QUERY = 32_768
# A line number that no file has.
MAX_LINE_NUMBER = 1 << 31


class CodeJson(TypedDict):
    """Lines around a frame's line: the file's path below its root, its complete path, and the first line's number."""

    path: str
    file: str
    first: int
    lines: list[str]


class SourceCodeJson(TypedDict):
    """The code of each frame; null where its file is not readable."""

    frames: list[CodeJson | None]


@endpoint("source_code", CODE, FreeText("frames"))
def source_code(code: SourceCode, frames: str) -> SourceCodeJson:
    """Return the code around some frames, which the query lists as JSON: `[["train.py", 12], ...]`."""
    found = [code.around(file, line) for file, line in _frames(frames)]
    return {"frames": [None if each is None else record(CodeJson, each) for each in found]}


def _frames(text: str) -> list[tuple[str, int]]:
    remedy = f'give up to {MAX_FRAMES}, such as [["train.py", 12]]'
    try:
        listed = json.loads(text) if len(text) <= MAX_QUERY else None
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list) or len(listed) > MAX_FRAMES:
        raise BadParameter("Not a list of frames", text[:80], remedy)
    for frame in listed:
        if not (isinstance(frame, list) and len(frame) == 2 and isinstance(frame[0], str)):
            raise BadParameter("Not a frame", str(frame)[:80], remedy)
        if type(frame[1]) is not int or not 0 <= frame[1] < MAX_LINE_NUMBER:
            raise BadParameter("Not a line number", str(frame[1])[:80], remedy)
    return [(file, line) for file, line in listed]
