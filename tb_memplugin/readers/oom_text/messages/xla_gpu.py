"""XLA's messages about a failed allocation on GPU, with the buffers of the program, and about rematerialization.

Out of memory while trying to allocate 2110783616 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    1.02GiB
                 total allocation:    7.88GiB
Peak buffers:
    Buffer 1:
        Size: 4.89GiB
        Operator: op_name="jit(dot)/dot_general" source_file="gemma.py" source_line=175
        XLA Label: custom-call
        Shape: f32[5104,257152]
        ==========================
"""

import re
from collections.abc import Iterator

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import (
    OP_NAME,
    Buffer,
    Failure,
    Rows,
    blocks,
    found_text,
    last_matches,
    listed_items,
    named_buffers,
    size_of,
    source_of,
)
from tb_memplugin.sizes import PRINTED as SIZE

MARKS = (
    "Out of memory while trying", "Failed to allocate request", "BufferAssignment stats", "exceeds the base limit",
    "hared memory", "by rematerialization",
)  # fmt: skip
HEAD = re.compile(
    rf"Out of memory while trying to allocate ({SIZE})(?:\s+with allocator (\S{{1,100}}) on device (\d{{1,5}}))?"
    rf"|Failed to allocate request for {SIZE} \((\d{{1,18}})B\) on device ordinal (\d{{1,5}})"
)
EXECUTABLE = re.compile(r"\A[\s.]{0,10}\[executable_name='([^'\n]{1,300})'\]")
# The head, then the allocator's own tags, then the statistics.
STATS = re.compile(r"\A[^\n]{0,400}\n{0,3}(?:\[[^\n]{0,400}\n)?BufferAssignment (?:OOM Debugging|stats)")
BARE = re.compile(r"BufferAssignment stats:")  # of a text that begins after its head
TOTAL = re.compile(rf"(?m)^total allocation:\s+({SIZE})")
PEAK = re.compile(r"Peak buffers:")
ITEM = re.compile(rf"(?m)^Buffer (\d{{1,5}}):\s*\nSize: ({SIZE})")
PARAMETER = re.compile(r"(?m)^Entry Parameter Subshape: ([^\n]{1,2000})")
SHAPE = re.compile(r"(?m)^Shape: ([^\n]{1,2000})")
LABEL = re.compile(r"(?m)^XLA Label: ([^\n]{1,200})")
ARGUMENTS = re.compile(r"The byte size of input/output arguments \((\d{1,18})\) exceeds the base limit \((\d{1,18})\)")
SHARED = re.compile(
    r"Shared memory size limit exceeded: requested (\d{1,18}), available:? (\d{1,18})"
    r"|out of resource: shared memory, Required: (\d{1,18}), Hardware limit: (\d{1,18})"
)
# The warning that rematerialization did not reduce memory enough, which precedes the failure.
REMATERIALIZED = re.compile(
    rf"Can't reduce memory use below {SIZE} \((-?\d{{1,18}}) bytes\) by rematerialization; "
    rf"only reduced to {SIZE} \((\d{{1,18}}) bytes\)(?:, down from {SIZE} \((\d{{1,18}}) bytes\))?"
)


def find(text: str) -> Iterator[Failure]:
    heads = blocks(HEAD, text)
    for head, block in heads or blocks(BARE, text):
        if head.re is BARE:
            rows, used, cut = _program(block)
            yield Failure(head.start(), "xla", "", OutOfMemory(), rows, used=used, cut=cut)
            continue
        asked = int(head[4]) if head[4] else size_of(head)
        device = head[3] or head[5]
        memory = head[2] or (f"GPU {device}" if device else "")
        named = EXECUTABLE.match(block)
        program = named[1] if named else ""
        rows, used, cut = _program(block) if STATS.match(block) else (Rows(), None, False)
        out_of_memory = OutOfMemory(asked=asked, wanted_by=program)
        yield Failure(head.start(), "xla", memory, out_of_memory, rows, used=used, program=program, cut=cut)
    for match in last_matches(ARGUMENTS, text):
        out_of_memory = OutOfMemory(asked=int(match[1]), capacity=int(match[2]), phase=OutOfMemoryPhase.COMPILE)
        yield Failure(match.start(), "xla", "GPU", out_of_memory, used=int(match[1]))
    for match in last_matches(SHARED, text):
        asked, limit = (int(number) for number in match.groups() if number)
        out_of_memory = OutOfMemory(asked=asked, capacity=limit, phase=OutOfMemoryPhase.COMPILE, wanted_by="A kernel")
        yield Failure(match.start(), "kernel", "GPU shared memory", out_of_memory, used=asked)
    yield from map(_rematerialized, last_matches(REMATERIALIZED, text))


def _rematerialized(match: re.Match[str]) -> Failure:
    limit, needed = int(match[1]), int(match[2])
    saved = int(match[3]) - needed if match[3] else None
    saving = "Rematerialization saved these bytes, but the program still exceeds its limit"
    # A negative limit means that arguments and outputs alone exceed it.
    out_of_memory = OutOfMemory(asked=needed, capacity=max(limit, 0), phase=OutOfMemoryPhase.COMPILE)
    caveat = Caveat(CaveatCode.REMATERIALIZED, saving, saved)
    return Failure(match.start(), "remat", "", out_of_memory, used=needed, caveats=(caveat,))


def _program(block: str) -> tuple[Rows, int | None, bool]:
    """Return the buffers live at the program's peak, the bytes it needs, and whether the list is cut off."""
    items, cut = listed_items(PEAK, ITEM, block)
    sized = [(item[1], size_of(item, 2), text) for item, text in items]
    buffers = [_buffer(f"Buffer {number}", size, text) for number, size, text in sized if size is not None]
    return named_buffers(buffers), size_of(TOTAL.search(block)), cut


def _buffer(name: str, size: int, text: str) -> Buffer:
    parameter = PARAMETER.search(text)
    return Buffer(
        size,
        name=name,
        op="parameter" if parameter else found_text(LABEL, text).strip(),
        op_name=found_text(OP_NAME, text),
        shape=found_text(PARAMETER if parameter else SHAPE, text).strip(),
        role=Role.PARAMETER if parameter else Role.UNKNOWN,
        source=source_of(text),
    )
